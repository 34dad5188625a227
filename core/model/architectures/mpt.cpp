// MPT (models/mpt): ALiBi in place of positions, no biases, and eager attention of its own, always:
// the distances are fp32 and make the scores fp32, and a boolean mask fills them.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/convolution.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {

namespace {

struct MptLayer {
  NormModule norm1, norm2;
  LinearModule qkv, out;
  PlainMlp mlp;
  std::int64_t heads = 0;
  double dropout = 0;
  bool clips = false;
  std::int32_t distances = kNone, mask = kNone;  ///< in Model::shared
};

/// Whatever expansion_ratio says, the class makes the feed-forward four times as wide.
MptLayer register_mpt_layers(ModelBuilder& m, std::int64_t layers, std::int64_t hidden) {
  MptLayer l;
  m.begin_repeat("transformer.blocks", layers);
  l.norm1 = m.layer_norm("norm_1", hidden, false);
  l.qkv = m.linear("attn.Wqkv", hidden, 3 * hidden);
  l.out = m.linear("attn.out_proj", hidden, hidden);
  l.norm2 = m.layer_norm("norm_2", hidden, false);
  l.mlp = plain_mlp(m, "ffn", hidden, 4 * hidden);
  m.end_repeat();
  return l;
}

/// A byte for each pair of tokens, whatever the precision.
Extent pairs_in_bytes() {
  return {1, Scale::scores, 4};
}

/// What batched products read: heads folded into the batch.
ValueId folded(Graph& g, ValueId x) {
  return g.map(OpKind::fold_heads, x);
}

ValueId mpt_attention(Graph& g, const MptLayer& l, ValueId x) {
  const std::int64_t hidden = per(g, x);
  const Extent pairs{l.heads, Scale::scores};
  ValueId fused = apply(g, l.qkv, x);
  if (l.clips) fused = g.map(OpKind::clamp, fused);
  const ValueId q = slice(g, fused, hidden);
  const ValueId k = slice(g, fused, hidden);
  const ValueId v = slice(g, fused, hidden);
  Op product{OpKind::matmul, {folded(g, q), folded(g, k), kNone}};
  product.work = {hidden, Scale::scores};
  const ValueId scaled = g.map(OpKind::scalar, g.op(product, pairs));
  const ValueId distant =
      g.map(OpKind::add, scaled, g.shared_input(l.distances, {l.heads, Scale::sequence}));
  // masked_fill keeps the mask, which the model has for all layers.
  const ValueId scores = g.map(OpKind::masked, distant, g.shared_input(l.mask, pairs_in_bytes()));
  const ValueId softmax = g.map(OpKind::softmax, g.map(OpKind::to_f32, scores));
  const ValueId probabilities = dropout(g, g.map(OpKind::to_like, softmax, v), l.dropout);
  Op mix{OpKind::matmul, {probabilities, folded(g, v), kNone}};
  mix.work = {hidden, Scale::scores};
  const ValueId context = g.map(OpKind::copy, g.op(mix, {hidden, Scale::tokens}));
  g.name(probabilities);  // returned with the layer's result
  const ValueId out = apply(g, l.out, context);
  for (const ValueId local : {q, k, v, scores, context}) g.hold(local, out);
  return out;
}

ValueId mpt_layer(Graph& g, const MptLayer& l, ValueId x) {
  const ValueId n1 = layer_norm(g, l.norm1, x);
  const ValueId attended = mpt_attention(g, l, n1);
  const ValueId middle = g.map(OpKind::add, dropout(g, attended, l.dropout), x);
  const ValueId n2 = layer_norm(g, l.norm2, middle);
  g.hold(n1, n2);  // of one name
  const ValueId delta = dropout(g, plain_mlp(g, l.mlp, Activation::gelu, n2), l.dropout);
  g.name(n2);
  g.name(attended);
  return g.map(OpKind::add, delta, middle);
}

}  // namespace

Model build_mpt(const ModelConfig& config, const BuildOptions& options) {
  const std::int64_t hidden = config.count({"d_model", "hidden_size"}, 2048);
  const std::int64_t layers = config.count({"n_layers", "num_hidden_layers"}, 24);
  const std::int64_t heads = config.count({"n_heads", "num_attention_heads"}, 16);
  const std::int64_t vocab = config.count({"vocab_size"}, 50368);
  const std::int64_t positions = config.count({"max_seq_len"}, 2048);
  config.require_divisible("d_model", hidden, "n_heads", heads);
  require_training(config, options, "layers that pass their probabilities on");

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = vocab,
               .max_positions = positions,
               .attention_heads = heads,
               .key_value_heads = heads,
               .supports_sdpa = false,
               .supports_flash_attn = false};
  const auto tokens = m.embedding("transformer.wte", vocab, hidden);
  MptLayer l = register_mpt_layers(m, layers, hidden);
  const auto norm = m.layer_norm("transformer.norm_f", hidden, false);
  const auto head = config.flag("tie_word_embeddings", true) ? m.tied_linear("lm_head", tokens)
                                                             : m.linear("lm_head", hidden, vocab);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, tokens, Scale::tokens);
  e.name_in_model(embedded);
  e.set_output(embedded);
  l.heads = heads;
  l.distances = m.share("alibi", {checked_mul(heads, positions), Scale::one}, true);
  l.mask = m.share("mask", pairs_in_bytes(), true);
  l.dropout = config.number("attn_config.attn_pdrop", 0.0);
  l.clips = config.number("attn_config.clip_qkv", 0.0) > 0;

  Graph& g = m.begin_segment("layers", layers, true);
  g.set_output(mpt_layer(g, l, g.chained_input({hidden, Scale::tokens})));
  add_causal_head(m, norm, head);
  return m.build();
}

}  // namespace shardplan
