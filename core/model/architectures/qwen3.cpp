// Qwen 3 dense (models/qwen3): Llama with an RMS norm over each head of q and k.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_qwen3(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 22016,
                                               .layers = 32,
                                               .heads = 32,
                                               .kv_heads = 32,
                                               .head_dim = 128,
                                               .vocab = 151936,
                                               .positions = 32768});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  d.head_norms_at = HeadNormsAt::projection;
  if (config.flag("use_sliding_window", false))
    d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  const std::int64_t full_layers = config.count_or_zero("max_window_layers", 28);
  d.sliding = sliding_layers(config, d.layers, [&](std::int64_t i) { return i >= full_layers; });
  return build_decoder(d, options);
}

}  // namespace shardplan
