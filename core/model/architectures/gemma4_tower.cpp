#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "model/architectures/gemma4.h"
#include "model/architectures/images.h"
#include "model/architectures/towers.h"
#include "model/layers/attention.h"
#include "model/layers/rotary.h"

namespace shardplan {
namespace {

/// Squares of tokens that the processor's class can fill an image up to
/// (image_processing_gemma4.py, _SUPPORTED_SOFT_TOKENS).
constexpr std::array<std::int64_t, 5> kTokens{70, 140, 280, 560, 1120};

FunctionTensor wide(std::int64_t per, Scale scale) {
  return {{per, scale}, FunctionType::wide};
}

/// The mean of each square of patches, as a product with one-hot weights in fp32
/// (_avg_pool_by_positions): [images, tokens, hidden].
Function pooling(const Gemma4Tower& t, std::int64_t tokens) {
  const std::int64_t rows = checked_mul(tokens, t.hidden);
  Function f;
  f.name = "means of squares of patches";
  f.kept = {wide(tokens, Scale::patches)};
  f.forward.working = {wide(2 * tokens, Scale::patches),  // int64
                       wide(t.hidden, Scale::patches), wide(rows, Scale::images)};
  const FunctionKernels product{.kind = FunctionKernelKind::product,
                                .m = {tokens, Scale::one},
                                .n = t.hidden,
                                .k = checked_mul(tokens, t.pool * t.pool),
                                .batch = {1, Scale::images}};
  f.forward.kernels = {{.kind = FunctionKernelKind::sweep, .wide = {6 * tokens, Scale::patches}},
                       {.kind = FunctionKernelKind::sweep,
                        .narrow = {t.hidden, Scale::patches},
                        .wide = {t.hidden, Scale::patches}},
                       product,
                       {.kind = FunctionKernelKind::sweep,
                        .narrow = {rows, Scale::images},
                        .wide = {rows, Scale::images}}};
  f.backward.working = {wide(rows, Scale::images), wide(t.hidden, Scale::patches)};
  f.backward.kernels = {product,
                        {.kind = FunctionKernelKind::sweep,
                         .narrow = {t.hidden, Scale::patches},
                         .wide = {t.hidden, Scale::patches}}};
  return f;
}

/// Rows of the table by the column of a patch, or by its row: indices of both are one tensor.
ValueId place(Graph& g, const ModelBuilder& m, const Gemma4Tower& t, Extent indices) {
  Op op{OpKind::embedding};
  op.module = m.owner(t.places);
  op.weight = t.places;
  op.side = indices;
  return g.op(op, {t.hidden, Scale::patches});
}

void write_patches(ModelBuilder& m, const Gemma4Tower& t) {
  Graph& g = m.begin_segment("tower embedding");
  const ValueId brought = g.op({OpKind::batch}, {t.patches.in, Scale::patches});
  const ValueId pixels = g.map(OpKind::scalar, g.map(OpKind::scalar, brought));
  const ValueId rows = apply(g, t.patches, pixels);
  const ValueId column = place(g, m, t, {2, Scale::patches});
  const ValueId places = g.map(OpKind::add, column, place(g, m, t, {}));
  Op filled{OpKind::masked, {places, kNone, kNone}};
  filled.side = {1, Scale::patches};  // which the pooling keeps too
  g.set_output(g.map(OpKind::add, rows, g.op(filled, {t.hidden, Scale::patches})));
}

/// Columns and rows of an image turn a half of each head's numbers each.
ValueId turned(Graph& g, const Gemma4Tower& t, const Rotation& tables, ValueId x,
               std::int64_t heads) {
  const std::int64_t half = t.head_dim / 2;
  Rotation part = tables;
  part.dim = half;
  const auto side = [&] { return rotate(g, part, slice(g, x, heads * half), heads, half); };
  const ValueId first = side();
  return g.op({OpKind::cat, {first, side(), kNone}}, g.value(x).extent);
}

/// Empty patches are masked: with an additive mask in eager attention, whatever the images, and
/// with one that each fused call makes of a boolean one.
struct PatchMask {
  std::int32_t additive = kNone;
  std::int32_t boolean = kNone;
};

PatchMask share_mask(ModelBuilder& m, const Gemma4Image& image) {
  if (m.options().attention != AttentionKind::sdpa)
    return {.additive = m.share("patch mask", {1, Scale::patch_scores})};
  if (!image.padded) return {};
  return {.boolean = m.share("patch mask", {1, Scale::patch_scores, 2})};  // a byte each
}

ValueId attend(Graph& g, const Gemma4Tower& t, AttentionKind kind, const RotaryTables& tables,
               const PatchMask& mask, ValueId x) {
  const Gemma4TowerLayer& l = t.layer;
  const Rotation turn = rotation(g, tables, Scale::patches);
  const ValueId q = turned(g, t, turn, gemma4_norm(g, l.q_norm, apply(g, l.q, x)), t.heads);
  const ValueId k = turned(g, t, turn, gemma4_norm(g, l.k_norm, apply(g, l.k, x)), t.kv_heads);
  const ValueId v = gemma4_norm(g, apply(g, l.v, x), t.head_dim);
  const AttentionShape shape{.heads = t.heads,
                             .kv_heads = t.kv_heads,
                             .head_dim = t.head_dim,
                             .queries = Scale::patches,
                             .keys = Scale::patches,
                             .dropout = t.dropout,
                             .causal = false};
  if (mask.additive != kNone) {
    const ValueId bias = g.shared_input(mask.additive, {1, Scale::patch_scores});
    return attention(g, kind, shape, q, k, v, bias);
  }
  if (mask.boolean == kNone) return attention(g, kind, shape, q, k, v);
  g.shared_input(mask.boolean, {1, Scale::patch_scores, 2});
  return masked_attention(g, shape, q, k, v);
}

void write_layers(ModelBuilder& m, const Gemma4Tower& t, const RotaryTables& tables,
                  const PatchMask& mask) {
  Graph& g = m.begin_segment("tower layers", t.layers, true);
  const Gemma4TowerLayer& l = t.layer;
  const ValueId x = g.chained_input({t.hidden, Scale::patches});
  const ValueId mixed =
      attend(g, t, m.options().attention, tables, mask, gemma4_norm(g, l.before, x));
  const ValueId middle = g.map(OpKind::add, x, gemma4_norm(g, l.after, apply(g, l.o, mixed)));
  const ValueId normal = gemma4_norm(g, l.before_mlp, middle);
  const ValueId gate = activate(g, t.activation, apply(g, l.gate, normal));
  const ValueId fed = apply(g, l.down, g.map(OpKind::mul, gate, apply(g, l.up, normal)));
  g.set_output(g.map(OpKind::add, middle, gemma4_norm(g, l.after_mlp, fed)));
}

/// Means of squares of patches, without those of empty ones.
void write_tokens(ModelBuilder& m, const Gemma4Tower& t, const Gemma4Image& image) {
  Graph& g = m.begin_segment("tower pooling");
  const std::int64_t tokens = image.patches / (t.pool * t.pool);
  const ValueId x = g.chained_input({t.hidden, Scale::patches});
  const ValueId filled = g.map(OpKind::scalar, x);
  const ValueId means = g.op(pooling(t, tokens), {filled, kNone, kNone},
                             {checked_mul(tokens, t.hidden), Scale::images});
  const ValueId scaled = g.map(OpKind::scalar, g.map(OpKind::to_f32, means));
  Op chosen{OpKind::masked, {scaled, kNone, kNone}};
  chosen.side = {tokens, Scale::images};
  ValueId left = g.op(chosen, {checked_mul(image.tokens, t.hidden), Scale::images});
  if (t.standardizes) left = g.map(OpKind::scalar, g.map(OpKind::scalar, left));
  g.set_output(g.map(OpKind::to_like, left, x));
}

}  // namespace

ClippedLinear clipped_linear(ModelBuilder& m, const std::string& name, std::int64_t in,
                             std::int64_t out, bool clips) {
  return {m.linear(name + ".linear", in, out), clips};
}

ValueId apply(Graph& g, const ClippedLinear& l, ValueId x) {
  if (!l.clips) return apply(g, l.linear, x);
  return g.map(OpKind::clamp, apply(g, l.linear, g.map(OpKind::clamp, x)));
}

Gemma4Tower gemma4_tower(ModelBuilder& m, const std::string& at, const ModelConfig& v) {
  Gemma4Tower t;
  t.hidden = v.count({"hidden_size"}, 768);
  t.layers = v.count({"num_hidden_layers"}, 16);
  t.heads = v.count({"num_attention_heads"}, 12);
  t.kv_heads = v.count({"num_key_value_heads"}, 12);
  t.head_dim = v.count({"head_dim"}, 64);
  t.positions = v.count({"position_embedding_size"}, 10240);
  t.pool = v.count({"pooling_kernel_size"}, 3);
  t.dropout = v.number("attention_dropout", 0.0);
  t.standardizes = v.flag("standardize", false);
  t.activation = read_activation(v, "hidden_activation", "gelu_pytorch_tanh");
  const std::int64_t ffn = v.count({"intermediate_size"}, 3072);
  const std::int64_t patch = side_of(v, "patch_size", 16);
  const std::int64_t width = checked_mul(t.head_dim, t.heads);
  const std::int64_t grouped = checked_mul(t.head_dim, t.kv_heads);
  const bool clips = v.flag("use_clipped_linears", false);
  t.places = m.tensor(at + "patch_embedder.position_embedding_table", {2, t.positions, t.hidden},
                      ParameterKind::other);
  t.patches = m.linear(at + "patch_embedder.input_proj", checked_mul(3, checked_mul(patch, patch)),
                       t.hidden);
  m.begin_repeat(at + "encoder.layers", t.layers);
  Gemma4TowerLayer& l = t.layer;
  l.q = clipped_linear(m, "self_attn.q_proj", t.hidden, width, clips);
  l.k = clipped_linear(m, "self_attn.k_proj", t.hidden, grouped, clips);
  l.v = clipped_linear(m, "self_attn.v_proj", t.hidden, grouped, clips);
  l.o = clipped_linear(m, "self_attn.o_proj", width, t.hidden, clips);
  l.q_norm = m.rms_norm("self_attn.q_norm", t.head_dim);
  l.k_norm = m.rms_norm("self_attn.k_norm", t.head_dim);
  l.gate = clipped_linear(m, "mlp.gate_proj", t.hidden, ffn, clips);
  l.up = clipped_linear(m, "mlp.up_proj", t.hidden, ffn, clips);
  l.down = clipped_linear(m, "mlp.down_proj", ffn, t.hidden, clips);
  l.before = m.rms_norm("input_layernorm", t.hidden);
  l.after = m.rms_norm("post_attention_layernorm", t.hidden);
  l.before_mlp = m.rms_norm("pre_feedforward_layernorm", t.hidden);
  l.after_mlp = m.rms_norm("post_feedforward_layernorm", t.hidden);
  m.end_repeat();
  return t;
}

Gemma4Image gemma4_image(const ModelConfig& c, const BuildOptions& options, const Gemma4Tower& t,
                         ModelFacts& facts) {
  const ModelConfig v = c.inner("vision_config");
  if (t.kv_heads != t.heads)
    v.fail("num_key_value_heads", "fewer heads of keys than of queries are not described",
           std::to_string(t.heads));
  if (t.head_dim % 4 != 0) v.fail("head_dim", "not in four parts", "a multiple of 4");
  std::int64_t most = c.count({"vision_soft_tokens_per_image"}, 280);
  const std::int64_t said = options.images.tokens;
  if (said > most) {
    const auto* fits = std::find_if(kTokens.begin(), kTokens.end(),
                                    [&](std::int64_t tokens) { return tokens >= said; });
    if (fits == kTokens.end())
      throw InputError({.file = c.file(),
                        .key = "workload.image_tokens",
                        .message = fmt::format("found {}, but this network's processor makes at "
                                               "most {} of an image",
                                               said, kTokens.back()),
                        .expected = fmt::format("{} or less", kTokens.back())});
    most = *fits;
  }
  if (said == 0)
    facts.assumed.push_back(
        fmt::format("{} tokens for an image, the most that the processor makes of one", most));
  return {.tokens = said == 0 ? most : said,
          .patches = checked_mul(most, checked_mul(t.pool, t.pool)),
          .padded = said != most};
}

void write_gemma4_tower(ModelBuilder& m, const Gemma4Tower& t, const Gemma4Image& image) {
  write_patches(m, t);
  const RotaryTables tables = share_rotary(m, t.head_dim, Scale::patches);
  const PatchMask mask = share_mask(m, image);
  write_layers(m, t, tables, mask);
  write_tokens(m, t, image);
}

}  // namespace shardplan
