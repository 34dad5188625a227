#include "model/layers/basic.h"

namespace shardplan {

ValueId apply(Graph& g, const EmbeddingModule& m, Scale scale) {
  Op op{OpKind::embedding};
  op.module = m.module;
  op.weight = m.weight;
  return g.op(op, {m.width, scale});
}

namespace {

ValueId convert(Graph& g, OpKind kind, ValueId x, ValueId like, bool only_without_autocast) {
  Op op{kind, {x, like, kNone}};
  op.only_without_autocast = only_without_autocast;
  return g.op(op, g.value(x).extent);
}

/// The branch of the adapters: B(A(x))·scaling, from x in their type.
ValueId low_rank(Graph& g, const LinearModule& m, ValueId x) {
  const Extent in = g.value(x).extent;
  const std::int64_t rows = in.per / m.in;
  Op a{OpKind::linear, {x, kNone, kNone}};
  a.module = m.lora->a_module;
  a.weight = m.lora->a;
  a.work = {checked_mul(in.per, m.lora->rank), in.scale};
  Op b{OpKind::linear, {g.op(a, {rows * m.lora->rank, in.scale}), kNone, kNone}};
  b.module = m.lora->b_module;
  b.weight = m.lora->b;
  b.work = {checked_mul(rows * m.out, m.lora->rank), in.scale};
  return g.map(OpKind::scalar, g.op(b, {rows * m.out, in.scale}));
}

/// peft adds it to the frozen result `y`: in the wider of their types, then cast back to that of
/// `y` (tuners/lora/layer.py). Over a base of bitsandbytes it casts before that, and nothing under
/// autocast; over one in 4 bits it adds to a copy of `y` (tuners/lora/bnb.py). The input and its
/// copy in the adapters' type are an argument and a name until the function returns.
ValueId add_adapters(Graph& g, const LinearModule& m, ValueId x, ValueId y) {
  if (!m.by_bitsandbytes) {
    const ValueId cast = g.map(OpKind::to_adapter, x);
    const ValueId sum = g.map(OpKind::add, y, low_rank(g, m, cast));
    const ValueId result = g.map(OpKind::to_like, sum, y);
    for (const ValueId local : {x, cast}) g.hold(local, result);
    return result;
  }
  const ValueId copy = m.widened ? g.map(OpKind::copy, y) : y;
  const ValueId own = convert(g, OpKind::to_adapter, x, kNone, true);
  const ValueId delta = low_rank(g, m, own);
  const ValueId result = g.map(OpKind::add, copy, convert(g, OpKind::to_like, delta, copy, true));
  for (const ValueId local : {x, own}) g.hold(local, result);
  return result;
}

}  // namespace

ValueId apply(Graph& g, const LinearModule& m, ValueId x) {
  // A linear over heads or experts sees several rows per unit of scale: rows = per / in.
  const Extent in = g.value(x).extent;
  const std::int64_t rows = in.per / m.in;
  Op op{OpKind::linear, {x, kNone, kNone}};
  op.module = m.module;
  op.weight = m.weight;
  op.bias = m.bias;
  op.work = {checked_mul(in.per, m.out), in.scale};
  const ValueId result = g.op(op, {rows * m.out, in.scale});
  // bitsandbytes' Linear4bit returns what it was given in that type (nn/modules.py).
  const ValueId y = m.widened ? g.map(OpKind::to_like, result, x) : result;
  return m.lora ? add_adapters(g, m, x, y) : y;
}

namespace {

ValueId fused_norm(Graph& g, OpKind kind, const NormModule& m, ValueId x,
                   const FusedKernel* kernel) {
  const Extent in = g.value(x).extent;
  Op op{kind, {x, kNone, kNone}};
  op.module = m.module;
  op.weight = m.weight;
  op.bias = m.bias;
  op.side = {in.per / m.width, in.scale};
  return g.fused_op(op, kernel, in);
}

}  // namespace

ValueId layer_norm(Graph& g, const NormModule& m, ValueId x, const FusedKernel* kernel) {
  return fused_norm(g, OpKind::layer_norm, m, x, kernel);
}

ValueId rms_norm_in_one(Graph& g, const NormModule& m, ValueId x, const FusedKernel* kernel) {
  return fused_norm(g, OpKind::rms_norm, m, x, kernel);
}

ValueId rms_norm(Graph& g, const NormModule& m, ValueId x) {
  if (g.fuses()) return rms_norm_in_one(g, m, x);
  const Extent in = g.value(x).extent;
  const Extent row{in.per / m.width, in.scale};
  const ValueId wide = g.map(OpKind::to_f32, x);
  const ValueId variance = g.op({OpKind::mean, {g.map(OpKind::power, wide), kNone, kNone}}, row);
  const ValueId inverse = g.map(OpKind::rsqrt, g.map(OpKind::scalar, variance));
  const ValueId normal = g.map(OpKind::to_like, g.map(OpKind::mul, wide, inverse), x);
  g.hold(wide, normal);
  Op weight{OpKind::parameter};
  weight.module = m.module;
  weight.weight = m.weight;
  return g.map(OpKind::mul, normal, g.op(weight, {m.width, Scale::one}));
}

ValueId dropout(Graph& g, ValueId x, double probability) {
  return probability > 0 && !g.cached() ? g.map(OpKind::dropout, x) : x;
}

ValueId slice(Graph& g, ValueId x, std::int64_t per) {
  return g.view(x, {per, g.value(x).extent.scale});
}

}  // namespace shardplan
