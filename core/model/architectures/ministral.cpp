// Ministral 8B of 2024 (models/ministral): Mistral whose layers say which of them slide.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_ministral(const ModelConfig& config, const BuildOptions& options) {
  if (!config.optional_count({"head_dim"}))
    config.fail("head_dim", "missing: the class has no default", "the width of a head");
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 14336,
                                               .layers = 32,
                                               .heads = 32,
                                               .kv_heads = 8,
                                               .vocab = 32000,
                                               .positions = 131072});
  d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  d.sliding = sliding_layers(config, d.layers, [](std::int64_t) { return true; });
  return build_decoder(d, options);
}

}  // namespace shardplan
