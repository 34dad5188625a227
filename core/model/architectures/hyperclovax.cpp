// HyperCLOVA X (models/hyperclovax): Granite with norms behind attention and MLP too.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_hyperclovax(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_granite(config);
  if (config.flag("use_post_norm", true)) {
    d.norms.push_back({NormPlace::after_attention, "post_norm1"});
    d.norms.push_back({NormPlace::after_mlp, "post_norm2"});
  }
  return build_decoder(d, options);
}

}  // namespace shardplan
