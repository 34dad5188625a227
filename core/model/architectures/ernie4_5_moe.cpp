// ERNIE 4.5 with experts (models/ernie4_5_moe): the dense model's layers and an fp32 router.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"

namespace shardplan {

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
  d.attention_dropout = 0;  // whatever the file says
  d.rotary = RotaryKind::f32_pairs;
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = c.count({"moe_num_experts", "num_experts"}, 64),
                   .ffn = c.count({"moe_intermediate_size"}, 1536),
                   .score = RouterScore::softmax_f32,
                   .shared_runs_first = true,
                   .shared_bias = d.mlp_bias,
                   .correction = "moe_statics.e_score_correction_bias"};
  s.top_k = experts_per_token(c, c.has("moe_k") ? "moe_k" : "num_experts_per_tok", 6, s.experts);
  s.shared_ffn = checked_mul(s.ffn, c.count_or_zero("moe_num_shared_experts", 2));
  const std::int64_t first = c.count_or_zero("moe_layer_start_index", 1);
  const double end = c.number("moe_layer_end_index", -1);
  const std::int64_t interval = c.count({"moe_layer_interval"}, 1);
  d.sparse = s;
  for (std::int64_t i = 0; i < d.layers; ++i)
    d.sparse_layers.push_back((i + 1) % interval == 0 && i >= first &&
                              (end < 0 || static_cast<double>(i) <= end));
  note_router_loss(d.assumed, c);
  return build_decoder(d, options);
}

}  // namespace shardplan
