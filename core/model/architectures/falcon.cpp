// Falcon (models/falcon): the old layouts (one key-value head or one for each query head, ALiBi or
// rotary embeddings, parallel or not) and new_decoder_architecture (grouped heads). Every layer is
// given an explicit mask, so the fused attention is never the flash kernel.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {
namespace {

struct FalconConfig {
  std::int64_t hidden, ffn, layers, heads, kv_heads, head_dim, vocab;
  bool alibi, grouped, multi_query, parallel, bias, two_norms;
  double hidden_dropout, attention_dropout;
};

FalconConfig read(const ModelConfig& c) {
  FalconConfig f{};
  f.hidden = c.count({"n_embed", "hidden_size"}, 4544);
  f.ffn = c.count({"ffn_hidden_size"}, 4 * f.hidden);
  f.layers = c.count({"num_hidden_layers"}, 32);
  f.heads = c.count({"num_attention_heads"}, 71);
  c.require_divisible("hidden_size", f.hidden, "num_attention_heads", f.heads);
  f.head_dim = f.hidden / f.heads;
  f.vocab = c.count({"vocab_size"}, 65024);
  f.alibi = c.flag("alibi", false);
  f.grouped = c.flag("new_decoder_architecture", false);
  f.multi_query = !f.grouped && c.flag("multi_query", true);
  f.parallel = c.flag("parallel_attn", true);
  f.bias = c.flag("bias", false);
  f.kv_heads = f.multi_query ? 1 : f.grouped ? c.count({"num_kv_heads"}, f.heads) : f.heads;
  c.require_divisible("num_attention_heads", f.heads, "num_kv_heads", f.kv_heads);
  const std::int64_t norms = c.count({"num_ln_in_parallel_attn"}, f.grouped ? 2 : 1);
  f.two_norms = norms == 2;
  if (f.grouped && !f.parallel)
    c.fail("parallel_attn", "false does not run with new_decoder_architecture", "true");
  if (norms > 2 || (f.two_norms && !f.grouped))
    c.fail("num_ln_in_parallel_attn", "does not run with this layout",
           f.grouped ? "1 or 2" : "1 or null");
  f.hidden_dropout = c.number("hidden_dropout", 0.0);
  f.attention_dropout = c.number("attention_dropout", 0.0);
  return f;
}

/// fused[..., [-2], :]: indexing with a list, which copies and keeps the index.
ValueId pick_heads(Graph& g, ValueId fused, std::int64_t width) {
  Op op{OpKind::gather_rows, {fused, kNone, kNone}};
  op.side = {1, Scale::one};
  return g.op(op, {width, Scale::tokens});
}

}  // namespace

Model build_falcon(const ModelConfig& config, const BuildOptions& options) {
  const FalconConfig c = read(config);
  const Activation activation = read_activation(config, "activation", "gelu");
  ModelBuilder m(options);
  m.facts() = {.hidden = c.hidden,
               .layers = c.layers,
               .vocabulary = c.vocab,
               .max_positions = config.count_or_zero("max_position_embeddings", 2048),
               .attention_heads = c.heads,
               .key_value_heads = c.kv_heads};
  const auto tokens = m.embedding("transformer.word_embeddings", c.vocab, c.hidden);
  m.begin_repeat("transformer.h", c.layers);
  const std::int64_t kv_width = c.kv_heads * c.head_dim;
  const auto qkv =
      m.linear("self_attention.query_key_value", c.hidden, c.hidden + 2 * kv_width, c.bias);
  const auto dense = m.linear("self_attention.dense", c.hidden, c.hidden, c.bias);
  const auto up = m.linear("mlp.dense_h_to_4h", c.hidden, c.ffn, c.bias);
  const auto down = m.linear("mlp.dense_4h_to_h", c.ffn, c.hidden, c.bias);
  NormModule attention_norm, mlp_norm;
  if (!c.parallel) mlp_norm = m.layer_norm("post_attention_layernorm", c.hidden);
  attention_norm = m.layer_norm(c.two_norms ? "ln_attn" : "input_layernorm", c.hidden);
  if (c.two_norms) mlp_norm = m.layer_norm("ln_mlp", c.hidden);
  m.end_repeat();
  const auto norm = m.layer_norm("transformer.ln_f", c.hidden);
  const auto head = config.flag("tie_word_embeddings", true)
                        ? m.tied_linear("lm_head", tokens)
                        : m.linear("lm_head", c.hidden, c.vocab);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, tokens, Scale::tokens);
  e.name_in_model(embedded);
  e.set_output(embedded);
  // The tables are made even where ALiBi takes their place.
  const RotaryTables tables = share_rotary(m, c.head_dim);
  // With ALiBi the mask is additive, for every head, and shared; without, each layer's attention
  // converts a boolean one.
  const bool eager = options.attention == AttentionKind::eager;
  std::int32_t alibi = kNone, mask = kNone;
  if (c.alibi) {
    m.share("alibi", {c.heads, Scale::tokens});
    alibi = m.share("alibi_mask", {c.heads, Scale::scores});
  } else if (eager) {
    mask = share_causal_mask(m, options.attention);
  }

  Graph& g = m.begin_segment("layers", c.layers, true);
  const ValueId x = g.chained_input({c.hidden, Scale::tokens});
  const ValueId n1 = layer_norm(g, attention_norm, x);
  const ValueId n2 = c.two_norms ? layer_norm(g, mlp_norm, x) : n1;
  const ValueId fused = apply(g, qkv, n1);
  ValueId q = slice(g, fused, c.hidden);
  ValueId k =
      c.grouped || c.multi_query ? pick_heads(g, fused, kv_width) : slice(g, fused, kv_width);
  ValueId v =
      c.grouped || c.multi_query ? pick_heads(g, fused, kv_width) : slice(g, fused, kv_width);
  std::int64_t kv_heads = c.kv_heads;
  if (c.grouped && c.heads != c.kv_heads) {  // broadcast to all query heads and flattened: copies
    kv_heads = c.heads;
    q = g.map(OpKind::copy, q);
    k = g.op({OpKind::copy, {k, kNone, kNone}}, {c.hidden, Scale::tokens});
    v = g.op({OpKind::copy, {v, kNone, kNone}}, {c.hidden, Scale::tokens});
  }
  if (!c.alibi) {
    q = rotate(g, tables, q, c.heads, c.head_dim);
    k = rotate(g, tables, k, kv_heads, c.head_dim);
  }
  const AttentionShape shape{.heads = c.heads,
                             .kv_heads = kv_heads,
                             .head_dim = c.head_dim,
                             .dropout = c.alibi ? c.attention_dropout : 0.0,
                             .softmax_f32 = false,
                             .mask = mask};
  ValueId mixed = kNone;
  const ValueId bias = c.alibi ? g.shared_input(alibi, {c.heads, Scale::scores}) : kNone;
  if (eager) {
    mixed = attention(g, AttentionKind::eager, shape, q, k, v, bias);
  } else if (kv_heads != c.heads) {
    mixed = math_attention(g, shape, q, k, v, bias);
  } else {
    mixed = masked_attention(g, shape, q, k, v, bias);
  }
  const ValueId attended = apply(g, dense, mixed);
  for (const ValueId local : {n1, fused, q}) g.name_until(local, attended);
  if (c.parallel) {
    const ValueId inner = activate(g, activation, apply(g, up, n2));
    const ValueId both = g.map(OpKind::add, apply(g, down, inner), attended);
    g.set_output(g.map(OpKind::add, x, dropout(g, both, c.hidden_dropout)));
  } else {
    const ValueId middle = g.map(OpKind::add, x, dropout(g, attended, c.attention_dropout));
    const ValueId inner = activate(g, activation, apply(g, up, layer_norm(g, mlp_norm, middle)));
    const ValueId delta = dropout(g, apply(g, down, inner), c.hidden_dropout);
    g.set_output(g.map(OpKind::add, middle, delta));
  }

  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({c.hidden, Scale::tokens});
  h.set_output(language_model_loss(h, head, layer_norm(h, norm, last)));
  return m.build();
}

}  // namespace shardplan
