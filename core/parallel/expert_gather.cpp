#include "parallel/expert_gather.h"

#include <cmath>
#include <vector>

#include "base/checked.h"
#include "parallel/rewrite.h"

namespace shardplan {
namespace {

class GatheredExperts {
 public:
  GatheredExperts(const Graph& graph, std::int64_t ranks, double imbalance)
      : graph_(graph), ranks_(ranks), imbalance_(imbalance), w_(graph) {}

  Graph run() {
    rows_.assign(graph_.values().size(), false);
    away_.assign(graph_.values().size(), false);
    for (const Op& op : graph_.ops())
      if (op.kind == OpKind::grouped_linear) mark_rows(op);
    for (const Input& in : graph_.inputs()) w_.input(in, graph_.value(in.value).extent);
    for (const Op& op : graph_.ops()) append(op);
    return w_.finish();
  }

 private:
  const Op* maker(ValueId value) const {
    for (const Op& op : graph_.ops())
      if (op.out == value) return &op;
    return nullptr;
  }

  /// What a layer's first product is given: rows gathered from tokens.
  void mark_rows(const Op& product) {
    ValueId rows = kNone;
    for (const Op* op = maker(product.in[0]); op != nullptr && op->kind == OpKind::gather_rows;
         op = maker(op->in[0]))
      rows = op->out;
    if (rows != kNone) rows_[static_cast<std::size_t>(rows)] = true;
  }

  bool is_away(ValueId value) const {
    return value != kNone && away_[static_cast<std::size_t>(value)];
  }

  Extent received(Extent extent) const {
    extent.per = static_cast<std::int64_t>(std::ceil(static_cast<double>(extent.per) * imbalance_));
    return extent;
  }
  Extent of_all(Extent extent) const { return {checked_mul(extent.per, ranks_), extent.scale}; }

  void append(const Op& op) {
    const auto out = static_cast<std::size_t>(op.out);
    const Extent extent = graph_.value(op.out).extent;
    Op now = w_.with_inputs(op);
    if (op.kind == OpKind::grouped_linear) now.work = received(op.work);
    if (rows_[out]) {
      now.in[0] = gathered(now.in[0], graph_.value(op.in[0]).extent);
      away_[out] = true;
    } else if (op.kind == OpKind::mean && is_away(op.in[0])) {
      return sum_over_ranks(now, op.out, extent);
    } else {
      away_[out] = is_away(op.in[0]) || is_away(op.in[1]) || is_away(op.in[2]);
    }
    w_.append(now, away_[out] ? received(extent) : extent);
  }

  /// A list of the ranks' tensors, and those in one (_AllGatherConcatVarlenFn).
  ValueId gathered(ValueId tokens, Extent extent) {
    Communication with;
    with.group = Group::expert;
    with.forward = Exchange::all_gather;
    with.backward = Exchange::all_reduce;
    with.result = ExchangeResult::staged;
    with.payload = of_all(extent);
    return w_.exchange(tokens, with, of_all(extent));
  }

  /// scatter_add_ of fp32 rows, all_reduce of a copy, narrow, contiguous.
  void sum_over_ranks(Op sum, ValueId old, Extent extent) {
    const Extent rows = w_.graph().value(sum.in[0]).extent;
    sum.in[0] = w_.graph().op({OpKind::to_f32, {sum.in[0], kNone, kNone}}, rows);
    w_.append(sum, of_all(extent));
    Communication with;
    with.group = Group::expert;
    with.forward = with.backward = Exchange::all_reduce;
    const ValueId all = w_.exchange(w_.at(old), with, of_all(extent));
    w_.replace(old, w_.graph().op({OpKind::copy, {all, kNone, kNone}}, extent));
  }

  const Graph& graph_;
  std::int64_t ranks_;
  double imbalance_;
  GraphRewrite w_;
  std::vector<bool> rows_;  ///< what a layer's experts are given
  std::vector<bool> away_;  ///< of tokens of all ranks
};

}  // namespace

Graph gather_tokens(const Graph& graph, std::int64_t ranks, double imbalance) {
  return GatheredExperts(graph, ranks, imbalance).run();
}

}  // namespace shardplan
