// Nemotron 3 and 4, Minitron (models/nemotron): a plain MLP of squared ReLUs, LayerNorms whose
// weight is one more than the parameter.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_nemotron(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 6144,
                                               .ffn = 24576,
                                               .layers = 32,
                                               .heads = 48,
                                               .vocab = 256000,
                                               .positions = 4096,
                                               .activation = "relu2"});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.mlp = MlpKind::plain;
  d.up_name = "up_proj";
  d.down_name = "down_proj";
  d.mlp_bias = config.flag("mlp_bias", false);
  d.norm = NormKind::layer_one_plus;
  d.rotary = RotaryKind::sliced;
  d.rotary_dim = partial_rotary_dim(config, d.head_dim, 0.5);
  return build_decoder(d, options);
}

}  // namespace shardplan
