// ERNIE 4.5 dense (models/ernie4_5): Llama rotated in pairs and in fp32.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_ernie4_5(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 1024,
                                               .ffn = 3072,
                                               .layers = 18,
                                               .heads = 16,
                                               .kv_heads = 2,
                                               .head_dim = 128,
                                               .vocab = 103424,
                                               .positions = 131072,
                                               .tied = true});
  d.qkv_bias = d.output_bias = d.mlp_bias = config.flag("use_bias", false);
  d.attention_dropout = 0;  // whatever the file says
  d.rotary = RotaryKind::f32_pairs;
  return build_decoder(d, options);
}

}  // namespace shardplan
