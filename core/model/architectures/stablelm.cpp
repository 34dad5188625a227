// StableLM 3B, 2 1.6B and 2 12B (models/stablelm): Llama with LayerNorm and partial rotary
// embeddings; the 12B model runs its MLP beside the attention and norms every head on its own.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_stablelm(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 2560,
                                               .ffn = 6912,
                                               .layers = 32,
                                               .heads = 32,
                                               .kv_heads = 32,
                                               .vocab = 50304,
                                               .positions = 4096,
                                               .reads_head_dim = false});
  d.qkv_bias = config.flag("use_qkv_bias", false);
  if (config.flag("qk_layernorm", false)) {
    d.query_key_norm = QueryKeyNorm::each_head_own;
    d.query_norm = "q_layernorm";
    d.key_norm = "k_layernorm";
  }
  d.rotary = RotaryKind::sliced;
  d.rotary_dim = partial_rotary_dim(config, d.head_dim, 0.25);
  d.norm = NormKind::layer;
  d.parallel = config.flag("use_parallel_residual", false);
  if (d.parallel) d.norms = {{NormPlace::before_attention, "input_layernorm"}};
  d.mlp_residual_dropout = config.number("hidden_dropout", 0.0);
  return build_decoder(d, options);
}

}  // namespace shardplan
