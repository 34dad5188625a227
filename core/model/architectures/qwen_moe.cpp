// Qwen 1.5-MoE and Qwen 2-MoE (models/qwen2_moe), Qwen 3-MoE (models/qwen3_moe).
#include <algorithm>

#include "model/architectures/architectures.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/experts.h"
#include "model/layers/rotary_attention.h"

namespace shardplan {
namespace {

struct QwenMoe {
  std::int64_t hidden, ffn, expert_ffn, layers, experts, top_k;
  std::int64_t shared_ffn;  ///< 0: no shared expert
  bool normalize, qkv_bias, o_bias, head_norms;
  AttentionShape shape;
  Activation activation;
};

struct QwenMoeLayer {
  RotaryAttention attention;
  LinearModule gate, shared_gate;
  Experts experts;
  GatedMlp mlp;  ///< the shared expert of a sparse layer, or the dense block
  NormModule norm1, norm2;
};

QwenMoeLayer declare(ModelBuilder& m, const QwenMoe& q, bool sparse) {
  QwenMoeLayer l;
  l.attention = rotary_attention(m, q.hidden, q.shape, q.qkv_bias, q.o_bias, q.head_norms);
  if (!sparse) {
    l.mlp = gated_mlp(m, "mlp", q.hidden, q.ffn);
  } else if (q.shared_ffn > 0) {
    l.gate = router(m, "mlp.gate", q.hidden, q.experts);
    l.experts = experts(m, "mlp.experts", q.experts, q.hidden, q.expert_ffn);
    l.mlp = gated_mlp(m, "mlp.shared_expert", q.hidden, q.shared_ffn);
    l.shared_gate = m.linear("mlp.shared_expert_gate", q.hidden, 1);
  } else {
    l.experts = experts(m, "mlp.experts", q.experts, q.hidden, q.expert_ffn);
    l.gate = router(m, "mlp.gate", q.hidden, q.experts);
  }
  l.norm1 = m.rms_norm("input_layernorm", q.hidden);
  l.norm2 = m.rms_norm("post_attention_layernorm", q.hidden);
  return l;
}

ValueId dense(Graph& g, const QwenMoeLayer& l, const QwenMoe& q, ValueId x) {
  return gated_mlp(g, l.mlp, q.activation, x);
}

ValueId sparse(Graph& g, const QwenMoeLayer& l, const QwenMoe& q, ValueId x) {
  const ValueId shared = q.shared_ffn > 0 ? dense(g, l, q, x) : kNone;
  const Routing routing = softmax_routing(g, l.gate, q.top_k, q.normalize, x);
  const ValueId weights = g.map(OpKind::to_like, routing.weights, routing.logits);
  const ValueId chosen = apply(g, l.experts, ExpertGate::activation, q.activation, x, weights);
  g.hold(routing.logits, chosen);
  if (shared == kNone) return chosen;
  const ValueId open = g.map(OpKind::sigmoid, apply(g, l.shared_gate, x));
  return g.map(OpKind::add, chosen, g.map(OpKind::mul, shared, open));
}

Model build(const ModelConfig& c, const BuildOptions& options, const QwenMoe& q) {
  c.require_divisible("num_attention_heads", q.shape.heads, "num_key_value_heads",
                      q.shape.kv_heads);
  if (q.top_k > q.experts && q.experts > 0)
    c.fail("num_experts_per_tok", "more experts per token than experts", "at most num_experts");
  const std::vector<std::int64_t> dense_layers = c.counts("mlp_only_layers");
  const std::int64_t step = c.count({"decoder_sparse_step"}, 1);
  const auto is_sparse = [&](std::int64_t i) {
    const bool listed =
        std::find(dense_layers.begin(), dense_layers.end(), i) != dense_layers.end();
    return !listed && q.experts > 0 && (i + 1) % step == 0;
  };
  ModelBuilder m(options);
  const DecoderStack stack{.hidden = q.hidden,
                           .vocabulary = c.count({"vocab_size"}, 151936),
                           .tied = c.flag("tie_word_embeddings", false),
                           .rotary_dim = q.shape.head_dim,
                           .runs = layer_runs(q.layers, is_sparse),
                           .attention = options.attention};
  m.facts() = {.hidden = q.hidden,
               .layers = q.layers,
               .vocabulary = stack.vocabulary,
               .max_positions = c.count_or_zero("max_position_embeddings", 32768),
               .attention_heads = q.shape.heads,
               .key_value_heads = q.shape.kv_heads};
  note_router_loss(m, c);
  return build_decoder(
      m, stack, [&](ModelBuilder& b, bool is) { return declare(b, q, is); },
      [&](Graph& g, const QwenMoeLayer& l, bool is, const Positions& at, ValueId x) {
        const ValueId mixed = apply(g, l.attention, options.attention, at, rms_norm(g, l.norm1, x));
        const ValueId middle = g.map(OpKind::add, x, mixed);
        const ValueId normal = rms_norm(g, l.norm2, middle);
        const ValueId delta = is ? sparse(g, l, q, normal) : dense(g, l, q, normal);
        g.hold(normal, delta);
        return g.map(OpKind::add, middle, delta);
      });
}

AttentionShape read_shape(const ModelConfig& c, std::int64_t hidden, std::int64_t default_heads,
                          std::int64_t default_kv_heads) {
  const std::int64_t heads = c.count({"num_attention_heads"}, default_heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", hidden, "num_attention_heads", heads);
  return {.heads = heads,
          .kv_heads = c.nullable_count("num_key_value_heads", default_kv_heads).value_or(heads),
          .head_dim = head_dim.value_or(hidden / heads),
          .dropout = c.number("attention_dropout", 0.0)};
}

}  // namespace

Model build_qwen2_moe(const ModelConfig& c, const BuildOptions& options) {
  QwenMoe q{};
  q.hidden = c.count({"hidden_size"}, 2048);
  q.ffn = c.count({"intermediate_size"}, 5632);
  q.expert_ffn = c.count({"moe_intermediate_size"}, 1408);
  q.shared_ffn = c.count({"shared_expert_intermediate_size"}, 5632);
  q.layers = c.count({"num_hidden_layers"}, 24);
  q.experts = c.count_or_zero("num_experts", 60);
  q.top_k = c.count({"num_experts_per_tok"}, 4);
  q.normalize = c.flag("norm_topk_prob", false);
  q.qkv_bias = c.flag("qkv_bias", true);
  q.shape = read_shape(c, q.hidden, 16, 16);
  q.activation = read_activation(c, "hidden_act", "silu");
  return build(c, options, q);
}

Model build_qwen3_moe(const ModelConfig& c, const BuildOptions& options) {
  QwenMoe q{};
  q.hidden = c.count({"hidden_size"}, 2048);
  q.ffn = c.count({"intermediate_size"}, 6144);
  q.expert_ffn = c.count({"moe_intermediate_size"}, 768);
  q.layers = c.count({"num_hidden_layers"}, 24);
  q.experts = c.count_or_zero(c.has("num_experts") ? "num_experts" : "num_local_experts", 128);
  q.top_k = c.count({"num_experts_per_tok"}, 8);
  q.normalize = c.flag("norm_topk_prob", false);
  q.qkv_bias = q.o_bias = c.flag("attention_bias", false);
  q.head_norms = true;
  q.shape = read_shape(c, q.hidden, 32, 4);
  q.activation = read_activation(c, "hidden_act", "silu");
  return build(c, options, q);
}

}  // namespace shardplan
