#include "parallel/expert_split.h"

#include <fmt/format.h>

#include <cmath>

#include "base/diagnostic.h"
#include "frameworks/registry.h"
#include "parallel/expert_gather.h"
#include "parallel/rewrite.h"

namespace shardplan {
namespace {

/// Rows go to the ranks that have their experts, or back.
ValueId send_rows(GraphRewrite& w, ValueId rows, Extent out) {
  Communication with;
  with.group = Group::expert;
  with.forward = with.backward = Exchange::all_to_all;
  return w.exchange(rows, with, out);
}

/// Rows in another order, by one index a row.
ValueId in_order(GraphRewrite& w, ValueId rows, Extent extent, std::int64_t width) {
  Op op{OpKind::gather_rows, {rows, kNone, kNone}};
  op.side = {extent.per / width, extent.scale};
  return w.graph().op(op, extent);
}

/// Where rows are put in the order of experts: before they are sent and by the layer itself, as
/// Megatron-LM's dispatcher has it; or again where they arrive and before they return, and weighted
/// in fp32 (torchtitan v0.2.2, distributed/expert_parallel.py, ExpertParallel, and
/// models/moe/moe.py, whose forward has a name for what is sent).
enum class Reorder : std::uint8_t { by_layer, on_arrival };

class ExpertSplit {
 public:
  ExpertSplit(double imbalance, Reorder reorder) : imbalance_(imbalance), reorder_(reorder) {}

  Graph split(const Graph& graph) {
    const std::size_t values = graph.values().size();
    rows_.assign(values, false);
    away_.assign(values, false);
    back_.assign(values, false);
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::grouped_linear) mark(graph, op);
    GraphRewrite w(graph);
    for (const Input& in : graph.inputs()) w.input(in, graph.value(in.value).extent);
    sent_.assign(values, kNone);
    for (const Op& op : graph.ops()) append(w, op);
    for (const Hold& hold : graph.holds())
      if (const ValueId sent = sent_[static_cast<std::size_t>(hold.value)]; sent != kNone)
        w.graph().hold(sent, w.at(hold.until));
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
      const ValueId sent = w.at(op.out);
      w.replace(op.out, send_rows(w, sent, received(extent)));
      if (reorder_ == Reorder::by_layer) return;
      sent_[out] = sent;
      width_ = extent.per / op.side.per;
      w.replace(op.out, in_order(w, w.at(op.out), received(extent), width_));
    } else if (back_[out]) {
      away_[out] = false;
      bring_home(w, op.out, extent);
    }
  }

  void bring_home(GraphRewrite& w, ValueId old, Extent extent) const {
    if (reorder_ == Reorder::by_layer) return w.replace(old, send_rows(w, w.at(old), extent));
    const ValueId ordered = in_order(w, w.at(old), received(extent), width_);
    const ValueId home = send_rows(w, ordered, extent);
    w.replace(old, w.graph().op({OpKind::to_f32, {home, kNone, kNone}}, extent));
  }

  double imbalance_;
  Reorder reorder_;
  std::int64_t width_ = 1;     ///< elements of a row
  std::vector<ValueId> sent_;  ///< by value of the old graph: what of the new one left this rank
  std::vector<bool> rows_;     ///< what a layer's experts are given
  std::vector<bool> back_;     ///< what they return
  std::vector<bool> away_;     ///< of tokens that came from other ranks
};

/// DeepSpeed's AutoEP in place of a layer's own experts (module_inject/auto_ep_layer.py,
/// moe/ep_experts.py): tokens are put in order again where they arrive, the gate is one kernel, and
/// results are weighted in fp32 once they are back in the order of their tokens.
class AutoEpSplit {
 public:
  explicit AutoEpSplit(double imbalance) : imbalance_(imbalance) {}

  Graph split(const Graph& graph) {
    GraphRewrite w(graph);
    part_.assign(graph.values().size(), Part::other);
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::grouped_linear && part_of(op.in[0]) == Part::other)
        mark(graph, op.in[0]);
    for (const Input& in : graph.inputs()) w.input(in, graph.value(in.value).extent);
    for (const Op& op : graph.ops()) append(w, op);
    return w.finish();
  }

 private:
  /// What a value of the old graph is to the experts.
  enum class Part : std::uint8_t { other, rows, both, half, activated, inner, out, weighted, back };

  Part part_of(ValueId v) const {
    return v == kNone ? Part::other : part_[static_cast<std::size_t>(v)];
  }
  void set(ValueId v, Part part) { part_[static_cast<std::size_t>(v)] = part; }

  /// A layer's rows, if a gather of tokens made them.
  void mark(const Graph& graph, ValueId value) {
    for (const Op& op : graph.ops())
      if (op.out == value && op.kind == OpKind::gather_rows) set(value, Part::rows);
  }

  Extent received(Extent extent) const {
    extent.per = static_cast<std::int64_t>(std::ceil(static_cast<double>(extent.per) * imbalance_));
    return extent;
  }

  void append(GraphRewrite& w, const Op& op) {
    const Extent extent = w.from().value(op.out).extent;
    const Part in = part_of(op.in[0]);
    if (part_of(op.out) == Part::rows) {
      w.append(w.with_inputs(op), extent);
      width_ = extent.per / op.side.per;
      const ValueId arrived = send_rows(w, w.at(op.out), received(extent));
      w.replace(op.out, in_order(w, arrived, received(extent), width_));
      return;
    }
    switch (in) {
      case Part::rows:
      case Part::inner: {
        Op now = w.with_inputs(op);
        now.work = received(op.work);
        w.append(now, received(extent));
        set(op.out, in == Part::rows ? Part::both : Part::out);
        if (in == Part::inner) bring_back(w, op.out, extent);
        return;
      }
      case Part::both:
        if (op.kind == OpKind::scalar) return drop(w, op, Part::both);
        w.append(w.with_inputs(op), received(extent));
        set(op.out, Part::half);
        return;
      case Part::half:  // the activation is inside the gate's kernel
        return drop(w, op, Part::activated);
      case Part::activated: {
        Op now = w.with_inputs(op);
        now.kind = OpKind::gated;
        w.append(now, received(extent));
        set(op.out, Part::inner);
        return;
      }
      case Part::out:
        if (op.kind == OpKind::scalar) return drop(w, op, Part::out);
        w.append(w.with_inputs(op), extent);  // times the weights
        set(op.out, Part::weighted);
        return;
      case Part::weighted:  // in order already
        return drop(w, op, Part::back);
      case Part::back:
      case Part::other:
        w.append(w.with_inputs(op), extent);
        return;
    }
  }

  /// An operation that AutoEP has no counterpart of: its output is its input.
  void drop(GraphRewrite& w, const Op& op, Part part) {
    w.replace(op.out, w.at(op.in[0]));
    set(op.out, part);
  }

  /// Results go to where their tokens came from, into the order of tokens, and to fp32.
  void bring_back(GraphRewrite& w, ValueId old, Extent extent) {
    const ValueId arrived = in_order(w, w.at(old), received(extent), width_);
    const ValueId home = send_rows(w, arrived, extent);
    const ValueId ordered = in_order(w, home, extent, width_);
    w.replace(old, w.graph().op({OpKind::to_f32, {ordered, kNone, kNone}}, extent));
  }

  double imbalance_;
  std::int64_t width_ = 1;  ///< elements of a row
  std::vector<Part> part_;  ///< by value of the old graph
};

/// Layers that say what their ranks exchange (model/layers/deepspeed_moe.cpp): as many slots arrive
/// as leave.
Graph send_slots(const Graph& graph) {
  GraphRewrite w(graph);
  for (const Input& in : graph.inputs()) w.input(in, graph.value(in.value).extent);
  for (const Op& op : graph.ops()) {
    const Extent extent = graph.value(op.out).extent;
    Op now = w.with_inputs(op);
    const bool sends = op.kind != OpKind::communicate && op.exchange.group == Group::expert;
    if (sends) now.exchange = {};
    w.append(now, extent);
    if (sends) w.replace(op.out, w.exchange(w.at(op.out), op.exchange, extent));
  }
  return w.finish();
}

}  // namespace

void split_experts(Model& model, const Plan& plan) {
  const ExpertExchange how = traits_of(plan).experts(plan);
  const std::int64_t ranks = plan.parallel.expert;
  ExpertSplit split(plan.parallel.expert_imbalance,
                    how == ExpertExchange::reordered ? Reorder::on_arrival : Reorder::by_layer);
  AutoEpSplit autoep_split(plan.parallel.expert_imbalance);
  for (Segment& segment : model.segments)
    segment.graph = how == ExpertExchange::slots    ? send_slots(segment.graph)
                    : how == ExpertExchange::autoep ? autoep_split.split(segment.graph)
                    : how == ExpertExchange::gathered
                        ? gather_tokens(segment.graph, ranks, plan.parallel.expert_imbalance)
                        : split.split(segment.graph);
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
