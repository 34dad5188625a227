// gpt-oss (models/gpt_oss): attention sinks, biased experts, always eager attention.
#include "model/architectures/architectures.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/experts.h"
#include "model/layers/latent_attention.h"
#include "model/layers/rotary_attention.h"

namespace shardplan {
namespace {

struct GptOssLayer {
  ModuleId module = kNone;  ///< the attention's, which owns the sinks
  ParameterId sinks = kNone;
  RotaryAttention attention;
  LinearModule router;
  Experts experts;
  NormModule norm1, norm2;
};

ValueId to_all_heads(Graph& g, const AttentionShape& s, ValueId x) {
  return g.op({OpKind::copy, {x, kNone, kNone}}, {s.heads * s.head_dim, s.keys});
}

/// Every head's row of scores gets its sink as one more column, which takes part in the softmax
/// and is then cut off. The extra column is left out of the sizes here: it is 1/s of the scores.
ValueId sink_attention(Graph& g, const GptOssLayer& l, std::int64_t window, std::int32_t mask,
                       ValueId q, ValueId k, ValueId v) {
  AttentionShape s = l.attention.shape;
  s.window = window;
  through_cache(g, s, k, v);
  const Extent scores{s.heads, score_scale(s.queries, s.keys)};
  Op product{OpKind::matmul, {q, to_all_heads(g, s, k), kNone}};
  product.work = {s.heads * s.head_dim, scores.scale};
  const ValueId scaled = g.map(OpKind::scalar, g.op(product, scores));
  const ValueId masked = g.map(OpKind::add, scaled, g.shared_input(mask, {1, scores.scale}));
  Op sinks{OpKind::parameter};
  sinks.module = l.module;
  sinks.weight = l.sinks;
  const ValueId sink = g.op(sinks, {s.heads, Scale::one});
  const ValueId combined = g.op({OpKind::cat, {masked, sink, kNone}}, scores);
  // Minus the row's maximum; then a softmax in the type of the scores.
  const ValueId shifted = g.map(OpKind::scalar, combined);
  const ValueId probabilities = g.map(OpKind::softmax, shifted);
  const ValueId kept = dropout(g, g.map(OpKind::to_like, probabilities, v), s.dropout);
  Op mix{OpKind::matmul, {kept, to_all_heads(g, s, v), kNone}};
  mix.work = {s.heads * s.head_dim, scores.scale};
  return g.map(OpKind::copy, g.op(mix, {s.heads * s.head_dim, Scale::tokens}));
}

/// `window`: 0 where the layer sees all tokens. `top_k`: experts of a token.
ValueId gpt_oss_layer(Graph& g, const GptOssLayer& l, std::int64_t window, std::int64_t top_k,
                      const Positions& at, ValueId x) {
  const ValueId n1 = normalize(g, NormKind::rms_wide, l.norm1, x);
  const ValueId q_straight = apply(g, l.attention.q, n1);
  const ValueId k_straight = apply(g, l.attention.k, n1);
  const ValueId v = apply(g, l.attention.v, n1);
  const ValueId q = rotate_pairs(g, at.tables, q_straight);
  const ValueId k = rotate_pairs(g, at.tables, k_straight);
  const ValueId mixed = apply(g, l.attention.o, sink_attention(g, l, window, at.mask, q, k, v));
  const ValueId middle = g.map(OpKind::add, x, mixed);
  const ValueId normal = normalize(g, NormKind::rms_wide, l.norm2, middle);
  // The softmax is over the chosen logits only, in their own type.
  const ValueId logits = apply(g, l.router, normal);
  const ValueId weights = g.map(OpKind::softmax, choose(g, logits, top_k));
  const ValueId delta = apply(g, l.experts, ExpertGate::clamped, Activation::silu, normal, weights);
  g.hold(logits, delta);
  g.hold(normal, delta);
  return g.map(OpKind::add, middle, delta);
}

}  // namespace

Model build_gpt_oss(const ModelConfig& c, const BuildOptions& options) {
  const std::int64_t hidden = c.count({"hidden_size"}, 2880);
  const std::int64_t ffn = c.count({"intermediate_size"}, 2880);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 36);
  const std::int64_t heads = c.count({"num_attention_heads"}, 64);
  const std::int64_t kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(heads);
  const std::int64_t count = c.count({"num_local_experts", "num_experts"}, 128);
  const std::int64_t top_k = c.count({"num_experts_per_tok", "experts_per_token"}, 4);
  const auto head_dim = c.nullable_count("head_dim", 64);
  const bool bias = c.flag("attention_bias", true);
  if (!head_dim) c.require_divisible("hidden_size", hidden, "num_attention_heads", heads);
  c.require_divisible("num_attention_heads", heads, "num_key_value_heads", kv_heads);
  if (top_k > count)
    c.fail("num_experts_per_tok", "more experts per token than experts",
           "at most num_local_experts");
  const AttentionShape shape{.heads = heads,
                             .kv_heads = kv_heads,
                             .head_dim = head_dim.value_or(hidden / heads),
                             .dropout = c.number("attention_dropout", 0.0)};

  // Every second layer slides, which tells layers apart only where there is a KV cache.
  const std::int64_t window = c.nullable_count("sliding_window", 128).value_or(0);
  const auto sliding = [&](std::int64_t i) { return !options.cached || i % 2 == 0; };
  ModelBuilder m(options);
  const DecoderStack stack{.hidden = hidden,
                           .vocabulary = c.count({"vocab_size"}, 201088),
                           .tied = c.flag("tie_word_embeddings", false),
                           .rotary_dim = shape.head_dim / 2,
                           .norm = NormKind::rms_wide,
                           .runs = layer_runs(layers, sliding),
                           .attention = AttentionKind::eager};
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = stack.vocabulary,
               .max_positions = c.count_or_zero("max_position_embeddings", 131072),
               .attention_heads = heads,
               .key_value_heads = kv_heads,
               .supports_sdpa = false,
               .supports_flash_attn = false};
  note_router_loss(m, c);
  const auto declare = [&](ModelBuilder& b, bool) {
    GptOssLayer l;
    l.sinks = b.tensor("self_attn.sinks", {heads}, ParameterKind::other);
    l.module = b.owner(l.sinks);
    l.attention = rotary_attention(b, hidden, shape, bias, bias);
    l.router = router(b, "mlp.router", hidden, count, true);
    l.experts = transposed_experts(b, "mlp.experts", count, hidden, ffn);
    l.norm1 = b.rms_norm("input_layernorm", hidden);
    l.norm2 = b.rms_norm("post_attention_layernorm", hidden);
    return l;
  };
  const auto forward = [&](Graph& g, const GptOssLayer& l, bool slides, const Positions& at,
                           ValueId x) {
    return gpt_oss_layer(g, l, slides && options.cached ? window : 0, top_k, at, x);
  };
  return build_decoder(m, stack, declare, forward);
}

}  // namespace shardplan
