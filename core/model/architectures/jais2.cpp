// Jais 2 (models/jais2): Llama with centred norms, biases and a plain MLP of squared ReLUs.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_jais2(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 3328,
                                               .ffn = 26624,
                                               .layers = 32,
                                               .heads = 26,
                                               .vocab = 150272,
                                               .positions = 8192,
                                               .activation = "relu2"});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", true);
  d.norm = NormKind::layer;
  d.mlp = MlpKind::plain;
  d.up_name = "up_proj";
  d.down_name = "down_proj";
  d.mlp_bias = config.flag("mlp_bias", true);
  return build_decoder(d, options);
}

}  // namespace shardplan
