// DistilBERT (models/distilbert): the class that "architectures" names, or ForMaskedLM.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/heads.h"
#include "model/layers/mlp.h"

namespace shardplan {
namespace {

struct DistilBert {
  std::int64_t hidden, ffn, layers, heads, vocab, positions;
  double dropout, attention_dropout, sequence_dropout;
  Activation activation;
  ModelHead head;
};

struct DistilLayer {
  LinearModule q, k, v, out, up, down;
  NormModule attention_norm, norm;
};

struct DistilHead {
  LinearModule dense, out;
  NormModule norm;
};

DistilBert read_distilbert(const ModelConfig& c, const ModelHead& head) {
  DistilBert d{};
  d.head = head;
  d.hidden = c.count({"dim", "hidden_size"}, 768);
  d.ffn = c.count({"hidden_dim"}, 3072);
  d.layers = c.count({"n_layers", "num_hidden_layers"}, 6);
  d.heads = c.count({"n_heads", "num_attention_heads"}, 12);
  d.vocab = c.count({"vocab_size"}, 30522);
  d.positions = c.count({"max_position_embeddings"}, 512);
  d.dropout = c.number("dropout", 0.1);
  d.attention_dropout = c.number("attention_dropout", 0.1);
  d.sequence_dropout = c.number("seq_classif_dropout", 0.2);
  d.activation = read_activation(c, "activation", "gelu");
  c.require_divisible("dim", d.hidden, "n_heads", d.heads);
  return d;
}

DistilLayer register_distil_layers(ModelBuilder& m, const DistilBert& d) {
  DistilLayer l;
  m.begin_repeat("distilbert.transformer.layer", d.layers);
  l.q = m.linear("attention.q_lin", d.hidden, d.hidden, true);
  l.k = m.linear("attention.k_lin", d.hidden, d.hidden, true);
  l.v = m.linear("attention.v_lin", d.hidden, d.hidden, true);
  l.out = m.linear("attention.out_lin", d.hidden, d.hidden, true);
  l.attention_norm = m.layer_norm("sa_layer_norm", d.hidden);
  l.up = m.linear("ffn.lin1", d.hidden, d.ffn, true);
  l.down = m.linear("ffn.lin2", d.ffn, d.hidden, true);
  l.norm = m.layer_norm("output_layer_norm", d.hidden);
  m.end_repeat();
  return l;
}

DistilHead register_distil_head(ModelBuilder& m, const ModelConfig& c, const DistilBert& d,
                                const EmbeddingModule& words) {
  DistilHead h;
  switch (d.head.kind) {
    case HeadKind::none:
      break;
    case HeadKind::language_model:
      m.set_like_blocks(true);  // peft's word for all linears means it too
      h.dense = m.linear("vocab_transform", d.hidden, d.hidden, true);
      m.set_like_blocks(false);
      h.norm = m.layer_norm("vocab_layer_norm", d.hidden);
      h.out = c.flag("tie_word_embeddings", true)
                  ? m.tied_linear("vocab_projector", words, true)
                  : m.linear("vocab_projector", d.hidden, d.vocab, true);
      break;
    case HeadKind::sequence:
      h.dense = m.linear("pre_classifier", d.hidden, d.hidden, true);
      h.out = m.linear("classifier", d.hidden, d.head.labels, true);
      break;
    case HeadKind::token:
      h.out = m.linear("classifier", d.hidden, d.head.labels, true);
      break;
  }
  return h;
}

void distil_layer(Graph& g, const DistilBert& d, const DistilLayer& l, AttentionKind kind) {
  const ValueId x = g.chained_input({d.hidden, Scale::tokens});
  const ValueId q = apply(g, l.q, x);
  const ValueId k = apply(g, l.k, x);
  const ValueId v = apply(g, l.v, x);
  const AttentionShape shape{.heads = d.heads,
                             .kv_heads = d.heads,
                             .head_dim = d.hidden / d.heads,
                             .dropout = d.attention_dropout,
                             .causal = false,
                             .softmax_f32 = false};
  const ValueId mixed = apply(g, l.out, attention(g, kind, shape, q, k, v));
  const ValueId attended = layer_norm(g, l.attention_norm, g.map(OpKind::add, mixed, x));
  const ValueId inner = activate(g, d.activation, apply(g, l.up, attended));
  const ValueId narrow = dropout(g, apply(g, l.down, inner), d.dropout);
  g.set_output(layer_norm(g, l.norm, g.map(OpKind::add, narrow, attended)));
}

ValueId distil_loss(Graph& g, const DistilBert& d, const DistilHead& h, ValueId x) {
  switch (d.head.kind) {
    case HeadKind::none:
      break;
    case HeadKind::language_model: {
      const ValueId inner = activate(g, d.activation, apply(g, h.dense, x));
      const ValueId normal = layer_norm(g, h.norm, inner);
      g.begin_logits();
      return cross_entropy(g, apply(g, h.out, normal));
    }
    case HeadKind::sequence: {
      const ValueId pooled = g.map(OpKind::relu, apply(g, h.dense, first_token(g, x)));
      return cross_entropy(g, apply(g, h.out, dropout(g, pooled, d.sequence_dropout)));
    }
    case HeadKind::token:
      return cross_entropy(g, apply(g, h.out, dropout(g, x, d.dropout)));
  }
  return mean_loss(g, x);
}

}  // namespace

Model build_distilbert(const ModelConfig& c, const BuildOptions& options) {
  const DistilBert d = read_distilbert(c, options.head);
  ModelBuilder m(options);
  m.facts() = {.hidden = d.hidden,
               .layers = d.layers,
               .vocabulary = d.vocab,
               .max_positions = d.positions,
               .attention_heads = d.heads,
               .key_value_heads = d.heads,
               .embeds_in_module = true};
  const std::string at = "distilbert.embeddings.";
  const auto words = m.embedding(at + "word_embeddings", d.vocab, d.hidden);
  const auto places = m.embedding(at + "position_embeddings", d.positions, d.hidden);
  const auto norm = m.layer_norm(at + "LayerNorm", d.hidden);
  const DistilLayer layer = register_distil_layers(m, d);
  const DistilHead head = register_distil_head(m, c, d, words);

  Graph& e = m.begin_segment("embedding");
  const ValueId rows = apply(e, words, Scale::tokens);
  const ValueId positions = apply(e, places, Scale::sequence);
  const ValueId sum = e.map(OpKind::add, rows, positions);
  const ValueId out = dropout(e, layer_norm(e, norm, sum), d.dropout);
  for (const ValueId local : {rows, positions}) e.hold(local, out);
  e.set_output(out);
  distil_layer(m.begin_segment("layers", d.layers, true), d, layer, options.attention);
  Graph& g = m.begin_segment("head");
  g.set_output(distil_loss(g, d, head, g.chained_input({d.hidden, Scale::tokens})));
  return m.build();
}

}  // namespace shardplan
