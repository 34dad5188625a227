// GLM-4 9B of 2024 (models/glm): GLM-4 0414 without the norms after the sublayers.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_glm(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_glm(config);
  d.norms = {{NormPlace::before_attention, "input_layernorm"},
             {NormPlace::before_mlp, "post_attention_layernorm"}};
  return build_decoder(d, options);
}

}  // namespace shardplan
