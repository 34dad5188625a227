#include "model/layers/rotary.h"

namespace shardplan {
namespace {

/// The columns that are turned, of all heads.
Extent turned_part(const Graph& g, const Rotation& r, ValueId x, std::int64_t heads) {
  return {heads * r.dim, g.value(x).extent.scale};
}

ValueId cast(Graph& g, const Rotation& r, ValueId x) {
  return r.upcast ? g.map(OpKind::to_f32, x) : x;
}

/// x·cos + rotate_half(x)·sin of those columns.
ValueId turn(Graph& g, const Rotation& r, ValueId wide, std::int64_t heads, std::int64_t head_dim) {
  const Extent part = turned_part(g, r, wide, heads);
  const ValueId turned = r.dim == head_dim ? wide : g.cut(wide, part);
  const ValueId straight =
      g.map(OpKind::mul, r.late_upcast ? g.map(OpKind::to_f32, turned) : turned, r.cos);
  const Extent half{part.per / 2, part.scale};
  const ValueId first = g.cut(turned, half), second = g.cut(turned, half);
  const ValueId negated = g.op({OpKind::scalar, {second, kNone, kNone}}, half);
  Op both{OpKind::cat, {negated, first, kNone}};
  both.stacks = r.pairs;
  ValueId swapped = g.op(both, part);
  if (r.late_upcast) swapped = g.map(OpKind::to_f32, swapped);
  return g.map(OpKind::add, straight, g.map(OpKind::mul, swapped, r.sin));
}

/// With the columns that pass through.
ValueId join(Graph& g, const Rotation& r, ValueId wide, ValueId turned, std::int64_t heads,
             std::int64_t head_dim) {
  if (r.dim == head_dim) return r.always_cat ? g.map(OpKind::copy, turned) : turned;
  const Extent all = g.value(wide).extent;
  const Extent part = turned_part(g, r, wide, heads);
  const ValueId rest = g.cut(wide, {all.per - part.per, all.scale});
  return g.op({OpKind::cat, {turned, rest, kNone}}, all);
}

ValueId cast_back(Graph& g, const Rotation& r, ValueId turned, ValueId like) {
  return r.cast_back ? g.map(OpKind::to_like, turned, like) : turned;
}

}  // namespace

RotaryTables share_rotary(ModelBuilder& m, std::int64_t rotary_dim, Scale scale, bool f32) {
  return {.cos = m.share("cos", {rotary_dim, scale}, f32),
          .sin = m.share("sin", {rotary_dim, scale}, f32),
          .dim = rotary_dim,
          .of_batch = scale == Scale::tokens || scale == Scale::patches};
}

Rotation rotation(Graph& g, const RotaryTables& tables, Scale x_scale) {
  const Scale one = x_scale == Scale::target_tokens ? Scale::target_sequence : Scale::sequence;
  const Scale scale = tables.of_batch ? x_scale : one;
  return {.cos = g.shared_input(tables.cos, {tables.dim, scale}),
          .sin = g.shared_input(tables.sin, {tables.dim, scale}),
          .dim = tables.dim};
}

ValueId rotate(Graph& g, const Rotation& r, ValueId x, std::int64_t heads, std::int64_t head_dim) {
  const FusedKernel* kernel = g.fused(KernelName::rope);
  if (g.fuses() || kernel != nullptr)
    return g.fused_op({OpKind::rotary, {x, r.cos, r.sin}}, kernel, g.value(x).extent);
  const ValueId wide = cast(g, r, x);
  const ValueId turned = turn(g, r, wide, heads, head_dim);
  return cast_back(g, r, join(g, r, wide, turned, heads, head_dim), x);
}

ValueId rotate(Graph& g, const RotaryTables& tables, ValueId x, std::int64_t heads,
               std::int64_t head_dim) {
  return rotate(g, rotation(g, tables, g.value(x).extent.scale), x, heads, head_dim);
}

ValueId split_heads(Graph& g, ValueId x) {
  return g.fuses() || g.fused(KernelName::rope) != nullptr ? x : g.turn(x);
}

void rotate_both(Graph& g, const Rotation& r, ValueId& q, std::int64_t heads, ValueId& k,
                 std::int64_t kv_heads, std::int64_t head_dim) {
  if (g.fuses() || g.fused(KernelName::rope) != nullptr) {
    q = rotate(g, r, q, heads, head_dim);
    k = rotate(g, r, k, kv_heads, head_dim);
    return;
  }
  const ValueId given_q = q, given_k = k;
  const ValueId wide_q = cast(g, r, given_q), wide_k = cast(g, r, given_k);
  const ValueId turned_q = turn(g, r, wide_q, heads, head_dim);
  const ValueId turned_k = turn(g, r, wide_k, kv_heads, head_dim);
  const ValueId joined_q = join(g, r, wide_q, turned_q, heads, head_dim);
  const ValueId joined_k = join(g, r, wide_k, turned_k, kv_heads, head_dim);
  q = cast_back(g, r, joined_q, given_q);
  k = cast_back(g, r, joined_k, given_k);
  for (const ValueId local : {given_q, given_k, wide_q, wide_k, joined_q}) g.hold(local, k);
}

void rotate_complex(Graph& g, ValueId& q, ValueId& k, ValueId table) {
  const auto turned = [&](ValueId x) {
    const ValueId wide = g.map(OpKind::to_f32, x);
    const ValueId product =
        table == kNone ? g.map(OpKind::scalar, wide) : g.map(OpKind::mul, wide, table);
    return g.map(OpKind::to_like, product, x);
  };
  q = turned(q);
  k = turned(k);
}

}  // namespace shardplan
