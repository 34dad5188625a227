// Code World Model (models/cwm): Llama with a window in three of four layers.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_cwm(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 6144,
                                               .ffn = 21504,
                                               .layers = 64,
                                               .heads = 48,
                                               .kv_heads = 8,
                                               .head_dim = 128,
                                               .vocab = 128256,
                                               .positions = 131072});
  constexpr std::int64_t kPattern = 4;  // the first of so many layers sees all tokens
  d.mlp_bias = config.flag("mlp_bias", false);
  d.window = config.nullable_count("sliding_window", 8192).value_or(0);
  d.sliding = sliding_layers(config, d.layers, [](std::int64_t i) { return i % kPattern != 0; });
  return build_decoder(d, options);
}

}  // namespace shardplan
