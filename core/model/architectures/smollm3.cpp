// SmolLM 3 (models/smollm3): Llama with every fourth layer without rotary positions.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_smollm3(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 2048,
                                               .ffn = 11008,
                                               .layers = 36,
                                               .heads = 16,
                                               .kv_heads = 4,
                                               .vocab = 128256,
                                               .positions = 32768,
                                               .tied = true});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.mlp_bias = config.flag("mlp_bias", false);
  const std::vector<std::int64_t> listed = config.counts("no_rope_layers");
  if (!listed.empty() && std::ssize(listed) != d.layers)
    config.fail("no_rope_layers", "not one entry for each layer", "1 or 0 for each layer");
  const std::int64_t interval = config.count({"no_rope_layer_interval"}, 4);
  for (std::int64_t i = 0; i < d.layers; ++i)
    d.unturned.push_back(listed.empty() ? (i + 1) % interval == 0
                                        : listed[static_cast<std::size_t>(i)] == 0);
  if (config.flag("use_sliding_window", false))
    d.window = config.nullable_count("sliding_window", {}).value_or(0);
  d.sliding = sliding_layers(
      config, d.layers, [&](std::int64_t i) { return d.unturned[static_cast<std::size_t>(i)]; });
  return build_decoder(d, options);
}

}  // namespace shardplan
