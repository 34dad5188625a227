#include "model/layers/deepspeed_moe.h"

#include <cmath>

#include "model/layers/mlp.h"

namespace shardplan {
namespace {

/// A result that ranks with parts of the experts exchange (parallel/expert_split.cpp).
Op exchanged(Op op) {
  op.exchange.group = Group::expert;
  op.exchange.forward = op.exchange.backward = Exchange::all_to_all;
  return op;
}

/// Rows picked by an int64 index each, out of a copy with a row of zeros at its end.
Op picked(Graph& g, ValueId rows, Extent indices) {
  Op op{OpKind::gather_rows, {g.map(OpKind::copy, rows), kNone, kNone}};
  op.side = indices;
  return op;
}

}  // namespace

/// Slots nobody is routed to read zeros and take part in everything. Each expert gets a slice of
/// what arrived, of which both of its first products make a copy.
ValueId deepspeed_moe(Graph& g, const Experts& e, Activation activation, ValueId x,
                      ValueId weights) {
  const std::int64_t k = per(g, weights);
  // Without dropping every expert has as many slots as the fullest one is sent rows: even routing.
  const double factor = e.moe->drop_tokens ? e.moe->capacity_factor : 1.0;
  const auto slots = [&](std::int64_t width) {
    const double rows = static_cast<double>(k) * factor;  // of a token
    return Extent{std::llround(std::ceil(rows * static_cast<double>(width))), Scale::tokens};
  };
  const auto product = [&](ValueId in, ParameterId weight, std::int64_t width, std::int64_t out) {
    Op op{OpKind::grouped_linear, {in, kNone, kNone}};
    op.module = e.module;
    op.weight = weight;
    op.work = slots(checked_mul(width, out));
    return g.op(op, slots(out));
  };
  const ValueId dispatched = g.op(exchanged(picked(g, x, slots(1))), slots(e.hidden));
  const ValueId gate = product(g.map(OpKind::copy, dispatched), e.gate, e.hidden, e.ffn);
  const ValueId up = product(g.map(OpKind::copy, dispatched), e.up, e.hidden, e.ffn);
  const ValueId each = product(gated(g, activation, gate, up), e.down, e.ffn, e.hidden);
  const ValueId returned =
      g.op(exchanged({OpKind::copy, {each, kNone, kNone}}), slots(e.hidden));  // put together
  const ValueId routed =
      g.op(picked(g, returned, {k, Scale::tokens}), {k * e.hidden, Scale::tokens});
  const ValueId weighted = g.map(OpKind::mul, routed, weights);
  const ValueId sum = g.op({OpKind::mean, {weighted, kNone, kNone}}, {e.hidden, Scale::tokens});
  const ValueId result = g.map(OpKind::to_like, sum, x);
  for (const ValueId local : {dispatched, returned}) g.hold(local, result);
  return result;
}

}  // namespace shardplan
