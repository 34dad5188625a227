// LFM2 (models/lfm2): short gated convolutions along the sequence, and attention in some layers.
#include <cmath>
#include <optional>

#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/convolution.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/mlp.h"
#include "model/layers/rotary.h"

namespace shardplan {
namespace {

struct Lfm2 {
  std::int64_t hidden = 0, ffn = 0, kernel = 0;
  bool bias = false;
  AttentionShape shape;
};

struct Lfm2Layer {
  LinearModule q, k, v, out;  ///< of an attending layer
  std::optional<NormModule> q_norm, k_norm;
  LinearModule in;  ///< of a convolving one
  Convolution1d convolution;
  LinearModule gate, up, down;
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

Lfm2Layer declare_lfm2(ModelBuilder& m, const Lfm2& s, bool attends) {
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
  l.gate = m.linear("feed_forward.w1", s.hidden, s.ffn);
  l.up = m.linear("feed_forward.w3", s.hidden, s.ffn);
  l.down = m.linear("feed_forward.w2", s.ffn, s.hidden);
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
  const ValueId mixed = g.map(OpKind::mul, slice(g, all, s.hidden), apply(g, l.convolution, gated));
  return apply(g, l.out, g.map(OpKind::copy, mixed));
}

}  // namespace

Model build_lfm2(const ModelConfig& c, const BuildOptions& options) {
  Lfm2 s;
  s.hidden = c.count({"hidden_size"}, 2560);
  s.ffn = lfm2_ffn(c);
  s.kernel = c.count({"conv_L_cache"}, 3);
  s.bias = c.flag("conv_bias", false);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 32);
  s.shape.heads = c.count({"num_attention_heads"}, 32);
  s.shape.kv_heads = c.count({"num_key_value_heads"}, 8);
  c.require_divisible("num_attention_heads", s.shape.heads, "num_key_value_heads",
                      s.shape.kv_heads);
  const auto head_dim = c.optional_count({"head_dim"});
  if (!head_dim) c.require_divisible("hidden_size", s.hidden, "num_attention_heads", s.shape.heads);
  s.shape.head_dim = head_dim.value_or(s.hidden / s.shape.heads);
  const std::vector<bool> attends = lfm2_attending(c, layers);
  ModelBuilder m(options);
  require_training(c, options, "short convolutions");
  const DecoderStack stack{
      .hidden = s.hidden,
      .vocabulary = c.count({"vocab_size"}, 65536),
      .tied = c.flag(c.has("tie_embedding") ? "tie_embedding" : "tie_word_embeddings", true),
      .rotary_dim = s.shape.head_dim,
      .runs = layer_runs(layers,
                         [&](std::int64_t i) {
                           return attends[static_cast<std::size_t>(i)] ? kAttendingLayer : 0;
                         }),
      .attention = options.attention,
      .final_norm = "model.embedding_norm"};
  m.facts() = {.hidden = s.hidden,
               .layers = layers,
               .vocabulary = stack.vocabulary,
               .max_positions = c.count_or_zero("max_position_embeddings", 128000),
               .attention_heads = s.shape.heads,
               .key_value_heads = s.shape.kv_heads};
  return build_decoder(
      m, stack, [&](ModelBuilder& b, bool attending) { return declare_lfm2(b, s, attending); },
      [&](Graph& g, const Lfm2Layer& l, bool attending, const Positions& at, ValueId x) {
        const ValueId n1 = rms_norm(g, l.before, x);
        const ValueId mixed = attending ? lfm2_attention(g, l, s, options.attention, at, n1)
                                        : lfm2_convolution(g, l, s, n1);
        const ValueId middle = g.map(OpKind::add, mixed, x);
        const ValueId n2 = rms_norm(g, l.after, middle);
        const ValueId gate = g.map(OpKind::silu, apply(g, l.gate, n2));
        const ValueId fed = apply(g, l.down, g.map(OpKind::mul, gate, apply(g, l.up, n2)));
        return g.map(OpKind::add, middle, fed);
      });
}

}  // namespace shardplan
