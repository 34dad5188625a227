#include "parallel/expert_split.h"

#include <fmt/format.h>

#include <cmath>

#include "base/diagnostic.h"
#include "parallel/rewrite.h"

namespace shardplan {
namespace {

class ExpertSplit {
 public:
  explicit ExpertSplit(double imbalance) : imbalance_(imbalance) {}

  Graph split(const Graph& graph) {
    const std::size_t values = graph.values().size();
    rows_.assign(values, false);
    away_.assign(values, false);
    back_.assign(values, false);
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::grouped_linear) mark(graph, op);
    GraphRewrite w(graph);
    for (const Input& in : graph.inputs()) w.input(in, graph.value(in.value).extent);
    for (const Op& op : graph.ops()) append(w, op);
    return w.finish();
  }

 private:
  /// What is gathered for a layer's first product is sent, before it is gathered by expert where
  /// it is; the last product's result is sent back, after it has been put in order where it is.
  void mark(const Graph& graph, const Op& product) {
    ValueId rows = kNone;
    for (const Op* op = maker(graph, product.in[0]); op != nullptr; op = maker(graph, op->in[0])) {
      if (op->kind != OpKind::gather_rows) break;
      rows = op->out;
    }
    if (rows != kNone) {
      rows_[static_cast<std::size_t>(rows)] = true;
      return;
    }
    ValueId result = product.out;
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::gather_rows && op.in[0] == result) result = op.out;
    back_[static_cast<std::size_t>(result)] = true;
  }

  static const Op* maker(const Graph& graph, ValueId value) {
    for (const Op& op : graph.ops())
      if (op.out == value) return &op;
    return nullptr;
  }

  bool is_away(const Op& op) const {
    for (const ValueId in : op.in)
      if (in != kNone && away_[static_cast<std::size_t>(in)]) return true;
    return false;
  }

  Extent received(Extent extent) const {
    extent.per = static_cast<std::int64_t>(std::ceil(static_cast<double>(extent.per) * imbalance_));
    return extent;
  }

  void append(GraphRewrite& w, const Op& op) {
    const auto out = static_cast<std::size_t>(op.out);
    const Extent extent = w.from().value(op.out).extent;
    away_[out] = is_away(op);
    Op now = w.with_inputs(op);
    if (op.kind == OpKind::grouped_linear) now.work = received(op.work);
    w.append(now, away_[out] ? received(extent) : extent);
    if (rows_[out]) {
      away_[out] = true;
      w.replace(op.out, send(w, w.at(op.out), received(extent)));
    } else if (back_[out]) {
      away_[out] = false;
      w.replace(op.out, send(w, w.at(op.out), extent));
    }
  }

  static ValueId send(GraphRewrite& w, ValueId rows, Extent out) {
    Communication with;
    with.group = Group::expert;
    with.forward = with.backward = Exchange::all_to_all;
    return w.exchange(rows, with, out);
  }

  double imbalance_;
  std::vector<bool> rows_;  ///< what a layer's experts are given
  std::vector<bool> back_;  ///< what they return
  std::vector<bool> away_;  ///< of tokens that came from other ranks
};

}  // namespace

void split_experts(Model& model, const Plan& plan) {
  ExpertSplit split(plan.parallel.expert_imbalance);
  for (Segment& segment : model.segments) segment.graph = split.split(segment.graph);
  const std::int64_t ranks = plan.parallel.expert;
  for (Parameter& p : model.parameters) {
    if (p.kind != ParameterKind::expert) continue;
    if (p.shape.front() % ranks != 0)
      throw InputError(
          {.key = "parallel.expert",
           .message = fmt::format("{} does not divide the {} experts", ranks, p.shape.front()),
           .expected = fmt::format("a divisor of {}", p.shape.front())});
    p.shape.front() /= ranks;
    p.numel /= ranks;
  }
}

}  // namespace shardplan
