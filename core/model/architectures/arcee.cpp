// Arcee AFM (models/arcee): Llama with a plain MLP of squared ReLUs.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_arcee(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 2560,
                                               .ffn = 18432,
                                               .layers = 32,
                                               .heads = 32,
                                               .vocab = 32000,
                                               .positions = 4096,
                                               .activation = "relu2"});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.mlp = MlpKind::plain;
  d.up_name = "up_proj";
  d.down_name = "down_proj";
  d.mlp_bias = config.flag("mlp_bias", false);
  return build_decoder(d, options);
}

}  // namespace shardplan
