#include "model/layers/basic.h"

#include "model/layers/adapters.h"

namespace shardplan {

ValueId apply(Graph& g, const EmbeddingModule& m, Scale scale, Extent indices) {
  Op op{OpKind::embedding};
  op.side = indices;
  op.module = m.module;
  op.weight = m.weight;
  const ValueId y = g.op(op, {m.width, scale});
  return m.lora ? add_embedding_adapters(g, m, y) : y;
}

ValueId apply_scaled(Graph& g, const EmbeddingModule& m, Scale scale, Extent indices) {
  const ValueId rows = apply(g, m, scale, indices);
  Op op{OpKind::scalar, {rows, kNone, kNone}};
  op.scales_rows = true;
  return g.op(op, g.value(rows).extent);
}

ValueId apply(Graph& g, const LinearModule& m, ValueId taken) {
  const ValueId x = m.rotation ? rotated(g, *m.rotation, m.in, taken) : taken;
  // A linear over heads or experts sees several rows per unit of scale: rows = per / in.
  const Extent in = g.value(x).extent;
  const std::int64_t rows = in.per / m.in;
  if (m.lora_in_weight) return product_with_adapted_weight(g, m, x);
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
  op.side = with_per(in, in.per / m.width);
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
  const ValueId scaled = g.map(OpKind::mul, wide, inverse);
  g.hold(wide, scaled);  // of one name
  Op weight{OpKind::parameter};
  weight.module = m.module;
  weight.weight = m.weight;
  const ValueId normal = g.map(OpKind::to_like, scaled, x);
  const ValueId out = g.times(g.op(weight, {m.width, Scale::one}), normal);
  g.hold(scaled, out);
  g.hold(x, out);  // an argument of the call
  return out;
}

ValueId dropout(Graph& g, ValueId x, double probability) {
  return probability > 0 && !g.cached() ? g.map(OpKind::dropout, x) : x;
}

ValueId parameter_value(Graph& g, const ModelBuilder& m, ParameterId id, std::int64_t size) {
  Op op{OpKind::parameter};
  op.module = m.owner(id);
  op.weight = id;
  return g.op(op, {size, Scale::one});
}

ValueId slice(Graph& g, ValueId x, std::int64_t per) {
  return g.view(x, {per, g.value(x).extent.scale});
}

ValueId part(Graph& g, ValueId x, std::int64_t per) {
  return g.part(x, {per, g.value(x).extent.scale});
}

}  // namespace shardplan
