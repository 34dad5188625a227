// Sparse families whose routers keep what no description here says: Phi 3.5-MoE (models/phimoe,
// sparse mixing), ERNIE 4.5 with experts (models/ernie4_5_moe, an fp32 router) and Hunyuan A13B
// (models/hunyuan_v1_moe, likewise).
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

Model build_phimoe(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 4096,
                                          .ffn = 6400,
                                          .layers = 32,
                                          .heads = 32,
                                          .kv_heads = 8,
                                          .vocab = 32064,
                                          .positions = 131072});
  d.qkv_bias = d.output_bias = c.flag("attention_bias", false);
  d.head_bias = c.flag("lm_head_bias", false);
  d.norm = NormKind::layer;
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = c.count({"num_local_experts"}, 16),
                   .ffn = d.ffn,
                   .router = "router"};
  s.top_k = experts_per_token(c, "num_experts_per_tok", 2, s.experts);
  make_sparse_from(d, s, 0);
  return build_decoder(d, options);
}

Model build_ernie4_5_moe(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 2560,
                                          .ffn = 12288,
                                          .layers = 28,
                                          .heads = 20,
                                          .kv_heads = 4,
                                          .vocab = 103424,
                                          .positions = 131072,
                                          .tied = true});
  d.qkv_bias = d.output_bias = d.mlp_bias = d.head_bias = c.flag("use_bias", false);
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = c.count({"moe_num_experts", "num_experts"}, 64),
                   .ffn = c.count({"moe_intermediate_size"}, 1536),
                   .shared_bias = d.mlp_bias,
                   .correction = "moe_statics.e_score_correction_bias"};
  s.top_k = experts_per_token(c, "moe_k", 6, s.experts);
  s.shared_ffn = checked_mul(s.ffn, c.count_or_zero("moe_num_shared_experts", 2));
  const std::int64_t first = c.count_or_zero("moe_layer_start_index", 1);
  const double end = c.number("moe_layer_end_index", -1);
  const std::int64_t interval = c.count({"moe_layer_interval"}, 1);
  d.sparse = s;
  for (std::int64_t i = 0; i < d.layers; ++i)
    d.sparse_layers.push_back((i + 1) % interval == 0 && i >= first &&
                              (end < 0 || static_cast<double>(i) <= end));
  return build_decoder(d, options);
}

Model build_hunyuan_v1_moe(const ModelConfig& c, const BuildOptions& options) {
  if (!c.optional_count({"head_dim"}))
    c.fail("head_dim", "missing: the class has no default", "the width of a head");
  DecoderDescription d = read_decoder(c, {.hidden = 4096,
                                          .ffn = 11008,
                                          .layers = 32,
                                          .heads = 32,
                                          .vocab = 290943,
                                          .positions = 2048});
  d.qkv_bias = d.output_bias = c.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  d.query_norm = "query_layernorm";
  d.key_norm = "key_layernorm";
  if (c.is_list("num_experts"))
    c.fail("num_experts", "a number for each layer is not supported", "one number");
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = c.count({"num_experts", "num_local_experts"}, 1),
                   .ffn = d.ffn,
                   .shared_ffn = d.ffn,
                   .router = "gate.wg",
                   .shared = "shared_mlp"};
  s.top_k = 1;
  make_sparse_from(d, s, 0);
  return build_decoder(d, options);
}

}  // namespace shardplan
