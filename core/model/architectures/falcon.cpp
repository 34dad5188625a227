// Falcon (models/falcon): the old layouts (one key-value head or one for each query head, ALiBi or
// rotary embeddings, parallel or not) and new_decoder_architecture (grouped heads). Every layer is
// given an explicit mask, so the fused attention is never the flash kernel.
#include "model/architectures/architectures.h"
#include "model/layers/adapters.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"
#include "model/layers/rotary.h"

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

struct FalconLayer {
  LinearModule qkv, dense, up, down;
  NormModule attention_norm, mlp_norm;
  RotaryTables tables;
  std::int32_t alibi = kNone, mask = kNone;  ///< in Model::shared
  Activation activation{};
  AttentionKind kind{};
};

FalconLayer register_falcon_layers(ModelBuilder& m, const FalconConfig& c) {
  FalconLayer l;
  m.begin_repeat("transformer.h", c.layers);
  l.qkv = m.linear("self_attention.query_key_value", c.hidden,
                   c.hidden + 2 * c.kv_heads * c.head_dim, c.bias);
  l.dense = m.linear("self_attention.dense", c.hidden, c.hidden, c.bias);
  l.up = m.linear("mlp.dense_h_to_4h", c.hidden, c.ffn, c.bias);
  l.down = m.linear("mlp.dense_4h_to_h", c.ffn, c.hidden, c.bias);
  if (!c.parallel) l.mlp_norm = m.layer_norm("post_attention_layernorm", c.hidden);
  l.attention_norm = m.layer_norm(c.two_norms ? "ln_attn" : "input_layernorm", c.hidden);
  if (c.two_norms) l.mlp_norm = m.layer_norm("ln_mlp", c.hidden);
  m.end_repeat();
  return l;
}

/// FalconLinear adds its bias behind the product, to which autocast does not reach: of fp32 weights
/// the sum is in fp32. bitsandbytes puts its own linear there.
ValueId apply_falcon(Graph& g, const LinearModule& m, ValueId x) {
  if (m.bias == kNone || m.by_bitsandbytes || m.widened) return apply(g, m, x);
  LinearModule bare = m;
  bare.bias = kNone;
  bare.lora.reset();
  const ValueId product = apply(g, bare, x);
  Op op{OpKind::parameter};
  op.module = m.module;
  op.weight = m.bias;
  const ValueId bias = g.view(g.op(op, {m.out, Scale::one}), g.value(product).extent);
  const ValueId y = g.map(OpKind::add, product, bias);
  return m.lora ? add_adapters(g, m, x, y) : y;
}

/// With ALiBi the mask is additive, for every head, and shared; without, each layer's attention
/// converts a boolean one.
void share_positions(ModelBuilder& m, const FalconConfig& c, FalconLayer& l) {
  // The tables are made even where ALiBi takes their place.
  l.tables = share_rotary(m, c.head_dim);
  if (c.alibi) {
    m.share("alibi", {c.heads, Scale::tokens});
    l.alibi = m.share("alibi_mask", {c.heads, Scale::scores});
  } else if (l.kind == AttentionKind::eager) {
    l.mask = share_causal_mask(m, l.kind);
  }
}

/// Attention over `fused`, the queries, keys and values. Its queries: the layer's name for them.
struct FalconAttention {
  ValueId queries = kNone, mixed = kNone;
};

FalconAttention falcon_attention(Graph& g, const FalconConfig& c, const FalconLayer& l,
                                 ValueId fused) {
  const std::int64_t kv_width = c.kv_heads * c.head_dim;
  const auto keys = [&] {
    return c.grouped || c.multi_query ? pick_heads(g, fused, kv_width) : slice(g, fused, kv_width);
  };
  ValueId q = slice(g, fused, c.hidden);
  ValueId k = keys();
  ValueId v = keys();
  std::int64_t kv_heads = c.kv_heads;
  if (c.grouped && c.heads != c.kv_heads) {  // broadcast to all query heads and flattened: copies
    kv_heads = c.heads;
    q = g.map(OpKind::copy, q);
    k = g.op({OpKind::copy, {k, kNone, kNone}}, {c.hidden, Scale::tokens});
    v = g.op({OpKind::copy, {v, kNone, kNone}}, {c.hidden, Scale::tokens});
  }
  if (!c.alibi) {
    rotate_both(g, rotation(g, l.tables), q, c.heads, k, kv_heads, c.head_dim);
  }
  const AttentionShape shape{.heads = c.heads,
                             .kv_heads = kv_heads,
                             .head_dim = c.head_dim,
                             .dropout = c.alibi ? c.attention_dropout : 0.0,
                             .softmax_f32 = false,
                             .mask = l.mask};
  const ValueId bias = c.alibi ? g.shared_input(l.alibi, {c.heads, Scale::scores}) : kNone;
  if (l.kind == AttentionKind::eager) return {q, attention(g, l.kind, shape, q, k, v, bias)};
  if (kv_heads != c.heads) return {q, math_attention(g, shape, q, k, v, bias)};
  return {q, masked_attention(g, shape, q, k, v, bias)};
}

ValueId falcon_layer(Graph& g, const FalconConfig& c, const FalconLayer& l, ValueId x) {
  const ValueId n1 = layer_norm(g, l.attention_norm, x);
  const ValueId n2 = c.two_norms ? layer_norm(g, l.mlp_norm, x) : n1;
  const ValueId fused = apply_falcon(g, l.qkv, n1);
  const FalconAttention a = falcon_attention(g, c, l, fused);
  const ValueId attended = apply_falcon(g, l.dense, a.mixed);
  for (const ValueId local : {n1, fused, a.queries}) g.hold(local, attended);
  if (c.parallel) {
    const ValueId inner = activate(g, l.activation, apply_falcon(g, l.up, n2));
    const ValueId both = g.map(OpKind::add, apply_falcon(g, l.down, inner), attended);
    return g.map(OpKind::add, x, dropout(g, both, c.hidden_dropout));
  }
  const ValueId middle = g.map(OpKind::add, x, dropout(g, attended, c.attention_dropout));
  const ValueId inner =
      activate(g, l.activation, apply_falcon(g, l.up, layer_norm(g, l.mlp_norm, middle)));
  const ValueId delta = dropout(g, apply_falcon(g, l.down, inner), c.hidden_dropout);
  return g.map(OpKind::add, middle, delta);
}

}  // namespace

Model build_falcon(const ModelConfig& config, const BuildOptions& options) {
  const FalconConfig c = read(config);
  ModelBuilder m(options);
  m.facts() = {.hidden = c.hidden,
               .layers = c.layers,
               .vocabulary = c.vocab,
               .max_positions = config.count_or_zero("max_position_embeddings", 2048),
               .attention_heads = c.heads,
               .key_value_heads = c.kv_heads,
               .cached_copies = c.grouped ? c.heads / c.kv_heads : 1};
  const auto tokens = m.embedding("transformer.word_embeddings", c.vocab, c.hidden);
  m.set_derived_linears(true);  // FalconLinear
  FalconLayer l = register_falcon_layers(m, c);
  m.set_derived_linears(false);
  l.activation = read_activation(config, "activation", "gelu");
  l.kind = options.attention;
  const auto norm = m.layer_norm("transformer.ln_f", c.hidden);
  const auto head = config.flag("tie_word_embeddings", true)
                        ? m.tied_linear("lm_head", tokens)
                        : m.linear("lm_head", c.hidden, c.vocab);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, tokens, Scale::tokens);
  e.name_in_model(embedded);
  e.set_output(embedded);
  share_positions(m, c, l);

  Graph& g = m.begin_segment("layers", c.layers, true);
  g.set_output(falcon_layer(g, c, l, g.chained_input({c.hidden, Scale::tokens})));

  add_causal_head(m, norm, head);
  return m.build();
}

}  // namespace shardplan
