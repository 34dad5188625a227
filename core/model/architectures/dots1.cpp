// dots.llm1 (models/dots1): routing of DeepSeek V3 behind the attention of Qwen 3.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_dots1(const ModelConfig& config, const BuildOptions& options) {
  DecoderDescription d = read_decoder(config, {.hidden = 4608,
                                               .ffn = 10944,
                                               .layers = 62,
                                               .heads = 32,
                                               .kv_heads = 32,
                                               .vocab = 152064,
                                               .positions = 2048});
  d.qkv_bias = d.output_bias = config.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  d.head_norms_at = HeadNormsAt::projection;
  const auto experts = config.optional_count({"n_routed_experts", "num_local_experts"});
  const auto shared = config.optional_count({"n_shared_experts"});
  const auto top_k = config.optional_count({"num_experts_per_tok"});
  if (!experts || !shared || !top_k)
    config.fail("n_routed_experts", "missing: the class has no default for experts",
                "n_routed_experts, n_shared_experts and num_experts_per_tok");
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = *experts,
                   .ffn = config.count({"moe_intermediate_size"}, 1408),
                   .score = RouterScore::sigmoid_f32,
                   .normalize = config.flag("norm_topk_prob", false),
                   .scales = true,
                   .experts_first = true};
  s.top_k = experts_per_token(config, "num_experts_per_tok", *top_k, s.experts);
  s.shared_ffn = checked_mul(s.ffn, *shared);
  make_sparse_from(d, s, config.count_or_zero("first_k_dense_replace", 0));
  d.window = config.nullable_count("sliding_window", 4096).value_or(0);
  const std::int64_t full = config.count_or_zero("max_window_layers", 62);
  d.sliding = sliding_layers(config, d.layers, [&](std::int64_t i) { return i >= full; });
  return build_decoder(d, options);
}

}  // namespace shardplan
