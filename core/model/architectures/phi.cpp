// Phi 1, 1.5 and 2 (models/phi): a parallel block with one LayerNorm, biases everywhere, partial
// rotary embeddings and a head with a bias.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_phi(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 2048,
                                               .ffn = 8192,
                                               .layers = 24,
                                               .heads = 32,
                                               .vocab = 51200,
                                               .positions = 2048,
                                               .activation = "gelu_new"});
  d.qkv_bias = d.output_bias = d.mlp_bias = d.head_bias = true;
  d.output_name = "dense";
  if (config.flag("qk_layernorm", false)) {
    d.query_key_norm = QueryKeyNorm::each_head;
    d.query_key_kind = NormKind::layer;
    d.query_norm = "q_layernorm";
    d.key_norm = "k_layernorm";
    d.query_key_norm_bias = true;
  }
  d.rotary = RotaryKind::sliced;
  d.rotary_dim = partial_rotary_dim(config, d.head_dim, 0.5);
  d.mlp = MlpKind::plain;
  d.norm = NormKind::layer;
  d.norms = {{NormPlace::before_attention, "input_layernorm"}};
  d.parallel = true;
  d.attention_residual_dropout = d.mlp_residual_dropout = config.number("resid_pdrop", 0.0);
  d.embedding_dropout = config.number("embd_pdrop", 0.0);
  d.final_norm = "final_layernorm";
  return build_decoder(d, options);
}

}  // namespace shardplan
