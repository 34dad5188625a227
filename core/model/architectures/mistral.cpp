// Mistral 7B and its kin (models/mistral): Llama without any bias. A layer whose sequence reaches
// the sliding window runs with an explicit mask.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_mistral(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 14336,
                                               .layers = 32,
                                               .heads = 32,
                                               .kv_heads = 8,
                                               .vocab = 32000,
                                               .positions = 131072});
  d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  return build_decoder(d, options);
}

}  // namespace shardplan
