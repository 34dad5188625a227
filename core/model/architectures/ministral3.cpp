// The text model of Ministral 3 and Devstral 2 (models/ministral3): Mistral whose queries are
// scaled by their position.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_ministral3(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 14336,
                                               .layers = 34,
                                               .heads = 32,
                                               .kv_heads = 8,
                                               .head_dim = 128,
                                               .vocab = 131072,
                                               .positions = 262144});
  d.window = config.nullable_count("sliding_window", {}).value_or(0);
  d.scales_queries = true;
  return build_decoder(d, options);
}

}  // namespace shardplan
