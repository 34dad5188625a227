// GLM 4.5 and 4.6 (models/glm4_moe): routing of DeepSeek V3 behind grouped attention over half of
// every head; the first layers dense.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_glm4_moe(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 4096,
                                               .ffn = 10944,
                                               .layers = 46,
                                               .heads = 96,
                                               .kv_heads = 8,
                                               .vocab = 151552,
                                               .positions = 131072});
  d.qkv_bias = config.flag("attention_bias", false);
  if (config.flag("use_qk_norm", false)) d.query_key_norm = QueryKeyNorm::each_head;
  d.rotary = RotaryKind::sliced;
  d.rotary_dim = partial_rotary_dim(config, d.head_dim, 0.5);
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = config.count({"n_routed_experts", "num_local_experts"}, 128),
                   .ffn = config.count({"moe_intermediate_size"}, 1408),
                   .score = RouterScore::sigmoid_f32,
                   .normalize = config.flag("norm_topk_prob", true),
                   .scales = true,
                   .experts_first = true};
  s.top_k = experts_per_token(config, "num_experts_per_tok", 8, s.experts);
  s.shared_ffn = checked_mul(s.ffn, config.count({"n_shared_experts"}, 1));
  make_sparse_from(d, s, config.count_or_zero("first_k_dense_replace", 1));
  return build_decoder(d, options);
}

}  // namespace shardplan
