// Command R7B and Command A (models/cohere2): Command-R with a window in three of four layers; the
// others have no rotary positions.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_cohere2(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 8192,
                                               .ffn = 22528,
                                               .layers = 40,
                                               .heads = 64,
                                               .vocab = 256000,
                                               .positions = 8192,
                                               .tied = true,
                                               .reads_head_dim = false});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.rotary = RotaryKind::f32;
  d.norm = NormKind::cohere;
  d.norms = {{NormPlace::before_attention, "input_layernorm"}};
  d.parallel = true;
  d.logits = LogitMap::scale;
  d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  const std::int64_t pattern = config.count({"sliding_window_pattern"}, 4);
  d.sliding =
      sliding_layers(config, d.layers, [&](std::int64_t i) { return (i + 1) % pattern != 0; });
  for (const bool slides : d.sliding) d.unturned.push_back(!slides || d.window == 0);
  return build_decoder(d, options);
}

}  // namespace shardplan
