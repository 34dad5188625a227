// ModernBERT (models/modernbert): an encoder with rotary positions, a gate, and attention in
// windows in most layers.
#include <vector>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"
#include "model/architectures/encoder.h"
#include "model/layers/convolution.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/heads.h"

namespace shardplan {
namespace {

struct ModernBert {
  Encoder encoder;
  double attention_dropout, mlp_dropout, embedding_dropout;
  std::int64_t window;  ///< from which length on a mask is made
  std::vector<bool> sliding;
  Activation head_activation;
  bool norm_bias, attention_bias, mlp_bias, pools_mean;
};

struct ModernLayer {
  std::optional<NormModule> attention_norm;  ///< the first layer takes the embeddings' for its own
  NormModule mlp_norm;
  LinearModule qkv, out, both, down;
};

struct ModernHead {
  LinearModule dense, out;
  NormModule norm;
};

enum ModernTrait { kOwnNorm = 1, kSliding = 2 };

ModernBert read_modernbert(const ModelConfig& c, const BuildOptions& options) {
  ModernBert b;
  b.encoder = read_encoder(c, {768, 1152, 22, 12, 50368, 8192});
  b.encoder.shape.activation = read_activation(c, "hidden_activation", "gelu");
  b.encoder.classifier_dropout = c.number("classifier_dropout", 0.0);
  b.head_activation = read_activation(c, "classifier_activation", "gelu");
  b.attention_dropout = c.number("attention_dropout", 0.0);
  b.mlp_dropout = c.number("mlp_dropout", 0.0);
  b.embedding_dropout = c.number("embedding_dropout", 0.0);
  b.window = c.count({"local_attention"}, 128) / 2;
  const std::int64_t every = c.count({"global_attn_every_n_layers"}, 3);
  b.sliding = sliding_layers(c, b.encoder.layers, [&](std::int64_t i) { return i % every != 0; });
  b.norm_bias = c.flag("norm_bias", false);
  b.attention_bias = c.flag("attention_bias", false);
  b.mlp_bias = c.flag("mlp_bias", false);
  b.pools_mean = c.text("classifier_pooling", "cls") == "mean";
  if (c.flag("sparse_prediction", false) && !options.counts_only)
    c.fail("sparse_prediction", "a head over the masked tokens alone cannot be estimated yet",
           "false");
  return b;
}

ModernLayer declare_modern_layer(ModelBuilder& m, const ModernBert& b, bool own_norm) {
  ModernLayer l;
  const EncoderShape& s = b.encoder.shape;
  if (own_norm) l.attention_norm = m.layer_norm("attn_norm", s.hidden, b.norm_bias);
  l.qkv = m.linear("attn.Wqkv", s.hidden, 3 * s.hidden, b.attention_bias);
  l.out = m.linear("attn.Wo", s.hidden, s.hidden, b.attention_bias);
  l.mlp_norm = m.layer_norm("mlp_norm", s.hidden, b.norm_bias);
  l.both = m.linear("mlp.Wi", s.hidden, 2 * s.ffn, b.mlp_bias);
  l.down = m.linear("mlp.Wo", s.ffn, s.hidden, b.mlp_bias);
  return l;
}

/// What layers of one kind are given.
struct ModernContext {
  AttentionKind kind;
  RotaryTables tables;
  std::int32_t mask = kNone;
  std::int64_t window = 0;
};

ValueId modern_attention(Graph& g, const ModernBert& b, const ModernLayer& l,
                         const ModernContext& context, ValueId x) {
  const EncoderShape& s = b.encoder.shape;
  const ValueId all = apply(g, l.qkv, x);
  Rotation turn = rotation(g, context.tables);
  turn.upcast = turn.cast_back = true;
  const std::int64_t head_dim = s.hidden / s.heads;
  ValueId q = part(g, all, s.hidden), k = part(g, all, s.hidden);
  rotate_both(g, turn, q, s.heads, k, s.heads, head_dim);
  const AttentionShape shape{.heads = s.heads,
                             .kv_heads = s.heads,
                             .head_dim = head_dim,
                             .dropout = b.attention_dropout,
                             .window = context.window,
                             .causal = false,
                             .mask = context.mask};
  const ValueId mixed = attention(g, context.kind, shape, q, k, part(g, all, s.hidden));
  return dropout(g, apply(g, l.out, mixed), b.attention_dropout);
}

void modern_layer(Graph& g, const ModernBert& b, const ModernLayer& l,
                  const ModernContext& context) {
  const EncoderShape& s = b.encoder.shape;
  const ValueId x = g.chained_input({s.hidden, Scale::tokens});
  const ValueId normal = l.attention_norm ? layer_norm(g, *l.attention_norm, x) : x;
  const ValueId middle = g.map(OpKind::add, x, modern_attention(g, b, l, context, normal));
  const ValueId both = apply(g, l.both, layer_norm(g, l.mlp_norm, middle));
  const ValueId gate = activate(g, s.activation, slice(g, both, s.ffn));
  const ValueId inner = dropout(g, g.map(OpKind::mul, gate, slice(g, both, s.ffn)), b.mlp_dropout);
  g.set_output(g.map(OpKind::add, middle, apply(g, l.down, inner)));
}

ModernHead declare_modern_head(ModelBuilder& m, const ModelConfig& c, const ModernBert& b,
                               const EmbeddingModule& words) {
  ModernHead h;
  const ModelHead& head = m.options().head;
  const std::int64_t hidden = b.encoder.shape.hidden;
  if (head.kind == HeadKind::none) return h;
  m.set_like_blocks(true);  // peft's word for all linears means it too
  h.dense = m.linear("head.dense", hidden, hidden, c.flag("classifier_bias", false));
  m.set_like_blocks(false);
  h.norm = m.layer_norm("head.norm", hidden, b.norm_bias);
  const bool bias = c.flag("decoder_bias", true);
  if (head.kind != HeadKind::language_model) {
    h.out = m.linear("classifier", hidden, head.labels, true);
  } else {
    h.out = c.flag("tie_word_embeddings", true)
                ? m.tied_linear("decoder", words, bias)
                : m.linear("decoder", hidden, b.encoder.vocab, bias);
  }
  return h;
}

/// The sum of the rows that are no padding, divided by their count: keeps which they are.
ValueId mean_of_tokens(Graph& g, ValueId x) {
  const auto masked = [&](ValueId value, Extent constant) {
    Op op{OpKind::masked, {value, kNone, kNone}};
    op.side = constant;
    return g.op(op, g.value(value).extent);
  };
  const ValueId rows = masked(x, {1, Scale::tokens});
  const ValueId sum = g.op({OpKind::mean, {rows, kNone, kNone}}, {per(g, x), Scale::batch});
  return masked(sum, {8, Scale::batch});
}

ValueId modern_loss(Graph& g, const ModernBert& b, const ModernHead& h, const ModelHead& head,
                    ValueId x) {
  const auto states = [&](ValueId rows) {
    return layer_norm(g, h.norm, activate(g, b.head_activation, apply(g, h.dense, rows)));
  };
  switch (head.kind) {
    case HeadKind::none:
      return mean_loss(g, x);
    case HeadKind::language_model: {
      const ValueId normal = states(x);
      g.begin_logits();
      const ValueId loss = cross_entropy_f32(g, apply(g, h.out, normal));
      g.hold(x, loss);
      return loss;
    }
    case HeadKind::sequence: {
      const ValueId pooled = b.pools_mean ? mean_of_tokens(g, x) : first_token(g, x);
      return cross_entropy(
          g, apply(g, h.out, dropout(g, states(pooled), b.encoder.classifier_dropout)));
    }
    case HeadKind::token:
      break;
  }
  return cross_entropy(g, apply(g, h.out, dropout(g, states(x), b.encoder.classifier_dropout)));
}

}  // namespace

Model build_modernbert(const ModelConfig& c, const BuildOptions& options) {
  const ModernBert b = read_modernbert(c, options);
  require_training(c, options, "encoders");
  const EncoderShape& s = b.encoder.shape;
  ModelBuilder m(options);
  m.facts() = facts_of(b.encoder);
  m.facts().undivided = true;
  const auto words = m.embedding("model.embeddings.tok_embeddings", b.encoder.vocab, s.hidden);
  const auto norm = m.layer_norm("model.embeddings.norm", s.hidden, b.norm_bias);
  const std::vector<LayerRun> runs = layer_runs(b.encoder.layers, [&](std::int64_t i) {
    return (i > 0 ? kOwnNorm : 0) + (b.sliding[static_cast<std::size_t>(i)] ? kSliding : 0);
  });
  std::vector<ModernLayer> layers;
  for (const LayerRun& run : runs) {
    m.begin_repeat("model.layers", run.count, run.start);
    layers.push_back(declare_modern_layer(m, b, (run.kind & kOwnNorm) != 0));
    m.end_repeat();
  }
  const auto final_norm = m.layer_norm("model.final_norm", s.hidden, b.norm_bias);
  const ModernHead head = declare_modern_head(m, c, b, words);

  Graph& e = m.begin_segment("embedding");
  e.set_output(
      dropout(e, layer_norm(e, norm, apply(e, words, Scale::tokens)), b.embedding_dropout));
  const std::int64_t head_dim = s.hidden / s.heads;
  const ModernContext full{options.attention, share_rotary(m, head_dim)};
  const ModernContext sliding{options.attention, share_rotary(m, head_dim),
                              share_window_mask(m, options.attention, b.window), b.window};
  for (std::size_t i = 0; i < runs.size(); ++i)
    modern_layer(m.begin_segment("layers", runs[i].count, true), b, layers[i],
                 (runs[i].kind & kSliding) != 0 ? sliding : full);
  Graph& h = m.begin_segment("head");
  const ValueId last = layer_norm(h, final_norm, h.chained_input({s.hidden, Scale::tokens}));
  h.set_output(modern_loss(h, b, head, options.head, last));
  return m.build();
}

}  // namespace shardplan
