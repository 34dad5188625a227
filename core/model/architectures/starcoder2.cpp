// StarCoder 2 (models/starcoder2): biases, LayerNorms and a plain MLP.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_starcoder2(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 3072,
                                               .ffn = 12288,
                                               .layers = 30,
                                               .heads = 24,
                                               .kv_heads = 2,
                                               .vocab = 49152,
                                               .positions = 4096,
                                               .tied = true,
                                               .activation = "gelu_pytorch_tanh"});
  d.qkv_bias = d.output_bias = d.mlp_bias = config.flag("use_bias", true);
  d.mlp = MlpKind::plain;
  d.up_name = "c_fc";
  d.down_name = "c_proj";
  d.norm = NormKind::layer;
  d.attention_residual_dropout = d.mlp_residual_dropout = config.number("residual_dropout", 0.0);
  d.embedding_dropout = config.number("embedding_dropout", 0.0);
  d.window = config.nullable_count("sliding_window", {}).value_or(0);
  return build_decoder(d, options);
}

}  // namespace shardplan
