// EXAONE 4 (models/exaone4): norms after the sublayers and over each head; with a window, only the
// sliding layers have rotary positions.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_exaone4(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 16384,
                                               .layers = 32,
                                               .heads = 32,
                                               .vocab = 102400,
                                               .positions = 2048});
  d.query_key_norm = QueryKeyNorm::each_head;
  d.norms = {{NormPlace::after_attention, "post_attention_layernorm"},
             {NormPlace::after_mlp, "post_feedforward_layernorm"}};
  d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  const bool listed = config.is_list("layer_types") || d.window == 0;
  const std::int64_t pattern = listed ? 1 : config.count({"sliding_window_pattern"}, 4);
  d.sliding =
      sliding_layers(config, d.layers, [&](std::int64_t i) { return (i + 1) % pattern != 0; });
  if (d.window > 0)
    for (const bool slides : d.sliding) d.unturned.push_back(!slides);
  return build_decoder(d, options);
}

}  // namespace shardplan
