#include "model/layers/adapters.h"

#include "model/layers/basic.h"

namespace shardplan {
namespace {

ValueId convert(Graph& g, OpKind kind, ValueId x, ValueId like, bool only_without_autocast) {
  Op op{kind, {x, like, kNone}};
  op.only_without_autocast = only_without_autocast;
  return g.op(op, g.value(x).extent);
}

ValueId product(Graph& g, ModuleId module, ParameterId weight, ValueId x, Extent out,
                std::int64_t work, bool detached) {
  Op op{OpKind::linear, {x, kNone, kNone}};
  op.module = module;
  op.weight = weight;
  op.work = {work, out.scale};
  op.detached = detached;
  return g.op(op, out);
}

ValueId times_a(Graph& g, const LinearModule& m, ValueId x, bool detached) {
  const Extent in = g.value(x).extent;
  const LoraModules& lora = *m.lora;
  return product(g, lora.a_module, lora.a, x, {in.per / m.in * lora.rank, in.scale},
                 checked_mul(in.per, lora.rank), detached);
}

ValueId times_b(Graph& g, const LinearModule& m, ValueId a, bool detached) {
  const Extent in = g.value(a).extent;
  const LoraModules& lora = *m.lora;
  const std::int64_t rows = in.per / lora.rank;
  return product(g, lora.b_module, lora.b, a, {rows * m.out, in.scale},
                 checked_mul(rows * m.out, lora.rank), detached);
}

/// What A has made for a linear of the same input; kNone: nothing yet.
ValueId made_by(const Graph& g, ParameterId a) {
  for (const Op& op : g.ops())
    if (op.weight == a) return op.out;
  return kNone;
}

/// The branch of the adapters: B(A(dropout(x)))·scaling, from x in their type.
ValueId low_rank(Graph& g, const LinearModule& m, ValueId x) {
  ValueId a = m.lora->joint ? made_by(g, m.lora->a) : kNone;
  if (a == kNone) a = times_a(g, m, dropout(g, x, m.lora->dropout), false);
  return g.map(OpKind::scalar, times_b(g, m, a, false));
}

ValueId weight_as_tensor(Graph& g, ModuleId module, ParameterId weight, std::int64_t count) {
  Op op{OpKind::parameter};
  op.module = module;
  op.weight = weight;
  return g.op(op, {count, Scale::one});
}

/// A tensor made of others that takes no gradient.
ValueId constant(Graph& g, OpKind kind, ValueId x, ValueId y, std::int64_t count) {
  Op op{kind, {x, y, kNone}};
  op.detached = true;
  return g.op(op, {count, Scale::one});
}

/// The frozen weight in the type of `x`, unpacked where it has few bits, and the lengths of its
/// rows with the adapters added: B(A(1)) of a unit matrix, of which nothing takes a gradient
/// (tuners/lora/dora.py, get_lora_weight, get_weight_norm). The update has a graph all the same,
/// which keeps what A and B have read for as long as it has a name.
struct WeightAndLengths {
  ValueId weight = kNone, lengths = kNone, update = kNone;
  ValueId read_by_a = kNone, read_by_b = kNone;
};
WeightAndLengths weight_and_lengths(Graph& g, const LinearModule& m, ValueId x) {
  const std::int64_t count = checked_mul(m.in, m.out);
  const ValueId a = weight_as_tensor(g, m.lora->a_module, m.lora->a, m.lora->rank * m.in);
  const ValueId unit = constant(g, OpKind::scalar, a, kNone, checked_mul(m.in, m.in));
  WeightAndLengths w;
  w.read_by_a = constant(g, OpKind::to_compute, unit, kNone, checked_mul(m.in, m.in));
  w.read_by_b = times_a(g, m, w.read_by_a, true);
  const ValueId update = times_b(g, m, w.read_by_b, true);
  w.update = constant(g, OpKind::to_like, update, x, count);
  ValueId own = weight_as_tensor(g, m.module, m.weight, count);
  if (m.by_bitsandbytes) own = constant(g, OpKind::copy, own, kNone, count);
  w.weight = constant(g, OpKind::to_like, own, x, count);
  const ValueId scaled = constant(g, OpKind::scalar, w.update, kNone, count);
  const ValueId whole = constant(g, OpKind::add, w.weight, scaled, count);
  w.lengths = constant(g, OpKind::mean, whole, kNone, m.out);
  for (const ValueId local : {a, unit}) g.hold(local, update);
  return w;
}

/// (s - 1)·base + s·B(A(x))·scaling, with s = magnitude / length. Without dropout `base` is `y`
/// less its bias, in the wider of their types; with it the product of what is left of x and the
/// weight in its type, which autograd keeps for the gradient of x (tuners/lora/variants.py,
/// DoraLinearVariant.forward).
ValueId by_magnitude(Graph& g, const LinearModule& m, ValueId x, ValueId y) {
  const ValueId taken = dropout(g, x, m.lora->dropout);
  const Extent in = g.value(taken).extent;
  const Extent out{in.per / m.in * m.out, in.scale};
  const WeightAndLengths w = weight_and_lengths(g, m, taken);
  Op magnitude{OpKind::parameter};
  magnitude.module = m.lora->magnitude_module;
  magnitude.weight = m.lora->magnitude;
  const ValueId s = g.map(OpKind::mul, g.op(magnitude, {m.out, Scale::one}), w.lengths);
  const ValueId low = times_b(g, m, times_a(g, m, taken, false), false);
  ValueId base = y;
  if (m.bias != kNone) {
    ValueId bias = weight_as_tensor(g, m.module, m.bias, m.out);
    // bitsandbytes' Linear4bit has cast its own to the type of products, which `y` has too, or fp32
    // (nn/modules.py 0.50, forward).
    if (m.widened) bias = constant(g, OpKind::to_like, bias, y, m.out);
    base = g.map(OpKind::add, y, g.view(bias, out));
  }
  if (taken != x) {
    Op op{OpKind::matmul, {taken, w.weight, kNone}};
    op.work = {checked_mul(in.per, m.out), in.scale};
    base = g.op(op, out);
  }
  const ValueId less = g.times(g.map(OpKind::scalar, s), base);
  const ValueId result = g.map(OpKind::add, less, g.map(OpKind::scalar, g.times(s, low)));
  for (const ValueId local : {taken, w.weight, w.update, w.lengths, s, low, base})
    g.hold(local, result);
  for (const ValueId saved : {w.read_by_a, w.read_by_b}) g.hold_saved(saved, result);
  return result;
}

}  // namespace

/// peft adds it to the frozen result `y`: in the wider of their types, then cast back to that of
/// `y` (tuners/lora/layer.py). Over a base of bitsandbytes it casts before that, and nothing under
/// autocast; over one in 4 bits it adds to a copy of `y` (tuners/lora/bnb.py). The input and its
/// copy in the adapters' type are an argument and a name until the function returns.
ValueId add_adapters(Graph& g, const LinearModule& m, ValueId x, ValueId y) {
  const bool magnitudes = m.lora->magnitude != kNone;
  if (!m.by_bitsandbytes) {
    const ValueId cast = g.map(OpKind::to_adapter, x);
    const ValueId delta = magnitudes ? by_magnitude(g, m, cast, y) : low_rank(g, m, cast);
    const ValueId result = g.map(OpKind::to_like, g.map(OpKind::add, y, delta), y);
    for (const ValueId local : {x, cast}) g.hold(local, result);
    return result;
  }
  const ValueId copy = m.widened ? g.map(OpKind::copy, y) : y;
  const ValueId own = convert(g, OpKind::to_adapter, x, kNone, true);
  ValueId result = kNone;
  if (magnitudes) {
    const ValueId sum = g.map(OpKind::add, copy, by_magnitude(g, m, own, copy));
    result = convert(g, OpKind::to_like, sum, copy, true);
  } else {
    const ValueId delta = low_rank(g, m, own);
    result = g.map(OpKind::add, copy, convert(g, OpKind::to_like, delta, copy, true));
  }
  for (const ValueId local : {x, own}) g.hold(local, result);
  return result;
}

/// tuners/lora/layer.py, Embedding.forward: A and B are parameters, not modules, and A is read as
/// the table that it is the transpose of.
ValueId add_embedding_adapters(Graph& g, const EmbeddingModule& m, ValueId y) {
  const LoraModules& lora = *m.lora;
  const Scale scale = g.value(y).extent.scale;
  Op look{OpKind::embedding};
  look.module = lora.a_module;
  look.weight = lora.a;
  const ValueId rows = g.op(look, {lora.rank, scale});
  const ValueId delta = product(g, lora.b_module, lora.b, rows, {m.width, scale},
                                checked_mul(m.width, lora.rank), false);
  const ValueId sum = g.map(OpKind::add, y, g.map(OpKind::scalar, delta));
  return g.map(OpKind::to_like, sum, y);
}

/// tuners/oft/layer.py: numbers become antisymmetric matrices Q, those 1 + 2Q + 2Q² + 2Q³ + Q⁴
/// (five terms of Cayley's form), by which the blocks of x in the adapters' type are multiplied.
/// einsum answers in the order of blocks, so that the result is copied.
ValueId rotated(Graph& g, const RotationModule& m, std::int64_t width, ValueId x) {
  const Extent in = g.value(x).extent;
  const std::int64_t count = checked_mul(width, m.block);
  const Extent blocks{count, Scale::one};
  const auto times = [&](ValueId a, ValueId b) {
    Op op{OpKind::matmul, {a, b, kNone}};
    op.work = {checked_mul(count, m.block), Scale::one};
    return g.op(op, blocks);
  };
  const ValueId cast = g.map(OpKind::to_adapter, x);
  Op numbers{OpKind::parameter};
  numbers.module = m.module;
  numbers.weight = m.weight;
  const ValueId own = g.op(numbers, {width / m.block * (m.block * (m.block - 1) / 2), Scale::one});
  const ValueId half = g.op({OpKind::copy, {own, kNone, kNone}}, blocks);
  const ValueId q = g.op({OpKind::add, {half, g.view(half, blocks), kNone}}, blocks);
  const ValueId second = times(q, q);
  const ValueId third = times(second, q);
  const ValueId fourth = times(third, q);
  const ValueId matrices =
      g.map(OpKind::add, g.map(OpKind::add, q, second), g.map(OpKind::add, third, fourth));
  Op turn{OpKind::matmul, {cast, matrices, kNone}};
  turn.work = {checked_mul(in.per, m.block), in.scale};
  const ValueId turned = g.op(turn, in);
  const ValueId result = g.map(OpKind::to_like, g.map(OpKind::copy, turned), x);
  for (const ValueId local : {x, cast, matrices, turned}) g.hold(local, result);
  return result;
}

/// tuners/lora/layer.py, ParamWrapper: both factors are cast to the weight's type, whatever
/// autocast says, and baddbmm adds their product to it.
ValueId adapted_weight(Graph& g, const LoraModules& lora, ModuleId module, ParameterId weight,
                       std::int64_t count) {
  const ValueId own = weight_as_tensor(g, module, weight, count);
  const auto factor = [&](ModuleId of, ParameterId id, std::int64_t numel) {
    return g.map(OpKind::to_like, weight_as_tensor(g, of, id, numel), own);
  };
  const ValueId a = factor(lora.a_module, lora.a, lora.a_count);
  const ValueId b = factor(lora.b_module, lora.b, lora.b_count);
  Op op{OpKind::matmul, {b, a, kNone}};
  op.work = {checked_mul(count, lora.rank), Scale::one};
  op.autocast = false;
  op.adds_factors = true;
  return g.op(op, {count, Scale::one});
}

/// The same of one matrix: B·A in the factors' type, cast and added.
ValueId adapted_matrix(Graph& g, const LinearModule& m) {
  const std::int64_t count = checked_mul(m.in, m.out);
  const LoraModules& lora = *m.lora;
  const ValueId own = weight_as_tensor(g, m.module, m.weight, count);
  const ValueId a = weight_as_tensor(g, lora.a_module, lora.a, lora.a_count);
  const ValueId b = weight_as_tensor(g, lora.b_module, lora.b, lora.b_count);
  Op op{OpKind::matmul, {b, a, kNone}};
  op.work = {checked_mul(count, lora.rank), Scale::one};
  const ValueId update = g.map(OpKind::scalar, g.op(op, {count, Scale::one}));
  return g.map(OpKind::add, own, g.map(OpKind::to_like, update, own));
}

ValueId product_with_adapted_weight(Graph& g, const LinearModule& m, ValueId x) {
  const Extent in = g.value(x).extent;
  const ValueId weight = adapted_matrix(g, m);
  Op op{OpKind::matmul, {x, weight, kNone}};
  op.work = {checked_mul(in.per, m.out), in.scale};
  return g.op(op, {in.per / m.in * m.out, in.scale});
}

}  // namespace shardplan
