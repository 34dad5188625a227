// Seed-OSS (models/seed_oss): Llama with dropout after both sublayers.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_seed_oss(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 27648,
                                               .layers = 64,
                                               .heads = 80,
                                               .kv_heads = 8,
                                               .head_dim = 128,
                                               .vocab = 155136,
                                               .positions = 524288});
  d.qkv_bias = config.flag("attention_bias", true);
  d.output_bias = config.flag("attention_out_bias", false);
  d.mlp_bias = config.flag("mlp_bias", false);
  d.attention_dropout = config.number("attention_dropout", 0.1);
  d.attention_residual_dropout = d.mlp_residual_dropout = config.number("residual_dropout", 0.1);
  return build_decoder(d, options);
}

}  // namespace shardplan
