// LFM2 (models/lfm2): short gated convolutions along the sequence, and attention in some layers.
// With experts from some layer on it is models/lfm2_moe.
#include <cmath>
#include <optional>

#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/convolution.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/mlp.h"
#include "model/layers/rotary.h"
#include "model/layers/sparse_mlp.h"

namespace shardplan {
namespace {

struct Lfm2 {
  std::int64_t hidden = 0, ffn = 0, kernel = 0, layers = 0;
  std::int64_t dense_layers = 0;  ///< the first ones, where others have experts
  SparseMlpShape sparse;          ///< no experts: none
  bool bias = false;
  bool tied = true;
  AttentionShape shape;
};

struct Lfm2Layer {
  LinearModule q, k, v, out;  ///< of an attending layer
  std::optional<NormModule> q_norm, k_norm;
  LinearModule in;  ///< of a convolving one
  Convolution1d convolution;
  LinearModule gate, up, down;
  std::optional<SparseMlp> sparse;
  NormModule before, after;
};

/// "layer_types", or the layers that full_attn_idxs lists (all of them without it).
std::vector<bool> lfm2_attending(const ModelConfig& c, std::int64_t layers) {
  const std::vector<std::string> types = c.texts("layer_types");
  if (!types.empty() && std::ssize(types) != layers)
    c.fail("layer_types", "not one entry for each layer", "one for each layer");
  std::vector<bool> attends(static_cast<std::size_t>(layers), types.empty());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "full_attention" && types[i] != "conv")
      c.fail("layer_types", "unknown layer type '" + types[i] + "'", "full_attention or conv");
    attends[i] = types[i] == "full_attention";
  }
  if (!types.empty() || !c.is_list("full_attn_idxs")) return attends;
  attends.assign(attends.size(), false);
  for (const std::int64_t i : c.counts("full_attn_idxs"))
    if (i < layers) attends[static_cast<std::size_t>(i)] = true;
  return attends;
}

/// block_auto_adjust_ff_dim: two thirds, times a number, to a multiple.
std::int64_t lfm2_ffn(const ModelConfig& c) {
  const std::int64_t ffn = c.count({"block_ff_dim", "intermediate_size"}, 12288);
  if (!c.flag("block_auto_adjust_ff_dim", true)) return ffn;
  const std::int64_t part = 2 * ffn / 3;
  const double factor = c.number("block_ffn_dim_multiplier", 1.0);
  const auto wide = static_cast<std::int64_t>(factor * static_cast<double>(part));
  const std::int64_t multiple = c.count({"block_multiple_of"}, 256);
  return checked_mul(multiple, ceil_div(wide, multiple));
}

Lfm2Layer declare_lfm2(ModelBuilder& m, const Lfm2& s, int kind) {
  const bool attends = (kind & kAttendingLayer) != 0;
  Lfm2Layer l;
  const std::int64_t width = s.shape.heads * s.shape.head_dim;
  const std::int64_t grouped = s.shape.kv_heads * s.shape.head_dim;
  if (attends) {
    l.q = m.linear("self_attn.q_proj", s.hidden, width);
    l.k = m.linear("self_attn.k_proj", s.hidden, grouped);
    l.v = m.linear("self_attn.v_proj", s.hidden, grouped);
    l.out = m.linear("self_attn.out_proj", width, s.hidden);
    l.q_norm = m.rms_norm("self_attn.q_layernorm", s.shape.head_dim);
    l.k_norm = m.rms_norm("self_attn.k_layernorm", s.shape.head_dim);
  } else {
    l.convolution = convolution1d(m, "conv.conv", s.hidden, s.kernel, s.bias);
    l.in = m.linear("conv.in_proj", s.hidden, 3 * s.hidden, s.bias);
    l.out = m.linear("conv.out_proj", s.hidden, s.hidden, s.bias);
  }
  if ((kind & kSparseLayer) != 0) {
    l.sparse = sparse_mlp(m, s.sparse);
  } else {
    l.gate = m.linear("feed_forward.w1", s.hidden, s.ffn);
    l.up = m.linear("feed_forward.w3", s.hidden, s.ffn);
    l.down = m.linear("feed_forward.w2", s.ffn, s.hidden);
  }
  l.before = m.rms_norm("operator_norm", s.hidden);
  l.after = m.rms_norm("ffn_norm", s.hidden);
  return l;
}

ValueId lfm2_attention(Graph& g, const Lfm2Layer& l, const Lfm2& s, AttentionKind kind,
                       const Positions& at, ValueId x) {
  AttentionShape shape = s.shape;
  shape.mask = at.mask;
  ValueId q = rms_norm(g, *l.q_norm, apply(g, l.q, x));
  ValueId k = rms_norm(g, *l.k_norm, apply(g, l.k, x));
  const ValueId v = apply(g, l.v, x);
  rotate_both(g, rotation(g, at.tables), q, shape.heads, k, shape.kv_heads, shape.head_dim);
  return apply(g, l.out, attention(g, kind, shape, q, k, v));
}

/// C · convolution(B · x), where B, C and x are parts of one projection.
ValueId lfm2_convolution(Graph& g, const Lfm2Layer& l, const Lfm2& s, ValueId x) {
  const ValueId all = apply(g, l.in, x);
  const ValueId gated = g.map(OpKind::mul, slice(g, all, s.hidden), slice(g, all, s.hidden));
  // causal_conv1d_fn answers in the type that it was given.
  const ValueId convolved = g.map(OpKind::to_like, apply(g, l.convolution, gated), gated);
  const ValueId mixed = g.map(OpKind::mul, slice(g, all, s.hidden), convolved);
  return apply(g, l.out, g.map(OpKind::copy, mixed));
}

ValueId lfm2_layer(Graph& g, const Lfm2Layer& l, const Lfm2& s, AttentionKind kind, bool attends,
                   const Positions& at, ValueId x) {
  const ValueId n1 = rms_norm(g, l.before, x);
  const ValueId mixed =
      attends ? lfm2_attention(g, l, s, kind, at, n1) : lfm2_convolution(g, l, s, n1);
  const ValueId middle = g.map(OpKind::add, mixed, x);
  const ValueId n2 = rms_norm(g, l.after, middle);
  if (l.sparse) return g.map(OpKind::add, middle, apply(g, *l.sparse, Activation::silu, n2));
  const ValueId gate = g.map(OpKind::silu, apply(g, l.gate, n2));
  const ValueId fed = apply(g, l.down, g.map(OpKind::mul, gate, apply(g, l.up, n2)));
  return g.map(OpKind::add, middle, fed);
}

/// What both types have; `hidden`: the class default.
Lfm2 read_lfm2(const ModelConfig& c, std::int64_t hidden) {
  Lfm2 s;
  s.hidden = c.count({"hidden_size"}, hidden);
  s.kernel = c.count({"conv_L_cache"}, 3);
  s.bias = c.flag("conv_bias", false);
  s.layers = c.count({"num_hidden_layers"}, 32);
  s.tied = c.flag(c.has("tie_embedding") ? "tie_embedding" : "tie_word_embeddings", true);
  s.shape.heads = c.count({"num_attention_heads"}, 32);
  s.shape.kv_heads = c.count({"num_key_value_heads"}, 8);
  c.require_divisible("num_attention_heads", s.shape.heads, "num_key_value_heads",
                      s.shape.kv_heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", s.hidden, "num_attention_heads", s.shape.heads);
  s.shape.head_dim = head_dim.value_or(s.hidden / s.shape.heads);
  return s;
}

Model build_lfm2_layers(const ModelConfig& c, const BuildOptions& options, const Lfm2& s) {
  const std::vector<bool> attends = lfm2_attending(c, s.layers);
  ModelBuilder m(options);
  require_training(c, options, "short convolutions");
  const DecoderStack stack{
      .hidden = s.hidden,
      .vocabulary = c.count({"vocab_size"}, 65536),
      .tied = s.tied,
      .rotary_dim = s.shape.head_dim,
      .runs = layer_runs(s.layers,
                         [&](std::int64_t i) {
                           const bool sparse = s.sparse.experts > 0 && i >= s.dense_layers;
                           return (attends[static_cast<std::size_t>(i)] ? kAttendingLayer : 0) |
                                  (sparse ? kSparseLayer : 0);
                         }),
      .attention = options.attention,
      .final_norm = "model.embedding_norm"};
  m.facts() = {.hidden = s.hidden,
               .layers = s.layers,
               .vocabulary = stack.vocabulary,
               .max_positions = c.count_or_zero("max_position_embeddings", 128000),
               .attention_heads = s.shape.heads,
               .key_value_heads = s.shape.kv_heads};
  return build_decoder(
      m, stack, [&](ModelBuilder& b, int kind) { return declare_lfm2(b, s, kind); },
      [&](Graph& g, const Lfm2Layer& l, int kind, const Positions& at, ValueId x) {
        return lfm2_layer(g, l, s, options.attention, (kind & kAttendingLayer) != 0, at, x);
      });
}

}  // namespace

Model build_lfm2(const ModelConfig& c, const BuildOptions& options) {
  Lfm2 s = read_lfm2(c, 2560);
  s.ffn = lfm2_ffn(c);
  return build_lfm2_layers(c, options, s);
}

Model build_lfm2_moe(const ModelConfig& c, const BuildOptions& options) {
  Lfm2 s = read_lfm2(c, 2048);
  if (c.texts("layer_types").empty())
    c.fail("layer_types", "missing: the class has no default", "conv or full_attention by layer");
  s.ffn = c.count({"intermediate_size"}, 7168);
  s.dense_layers = c.count_or_zero("num_dense_layers", 2);
  s.sparse = {.hidden = s.hidden,
              .experts = c.count({"num_experts"}, 32),
              .ffn = c.count({"moe_intermediate_size"}, 1792),
              .score = RouterScore::sigmoid_as_made,
              .normalize = c.flag("norm_topk_prob", true),
              .scales = true,
              .experts_first = true,
              .block = "feed_forward"};
  if (!options.counts_only)
    s.sparse.top_k = experts_per_token(c, "num_experts_per_tok", 4, s.sparse.experts);
  return build_lfm2_layers(c, options, s);
}

}  // namespace shardplan
