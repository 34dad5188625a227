#include "parallel/tensor_split.h"

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>

#include "base/diagnostic.h"
#include "parallel/expert_rows.h"
#include "parallel/tensor_splitter.h"
#include "parallel/whole_graph.h"

namespace shardplan {

void TensorSplit::run() {
  for (const Parameter& p : model_.parameters)
    if (p.adapter && style_ != SplitStyle::megatron) fail("LoRA's matrices have no published cut");
  std::vector<Graph> graphs;  // written from the whole model's parameters, one after the other
  for (std::size_t i = 0; i < model_.segments.size(); ++i) {
    const Segment& segment = model_.segments[i];
    const bool last = i + 1 == model_.segments.size();
    before_whole_ = !last && model_.segments[i + 1].whole;
    const bool takes = by_tokens_ && !before_whole_;
    graphs.push_back(segment.whole || segment.of_images
                         ? whole_graph(segment.graph, takes ? ranks_ : 1)
                         : split(segment));
  }
  for (std::size_t i = 0; i < graphs.size(); ++i) model_.segments[i].graph = std::move(graphs[i]);
  parameter_cuts_.apply(model_, [&](std::int64_t n, Part part) { return divided(n, part); });
}

void TensorSplit::fail(std::string message) const {
  throw InputError({.key = "parallel.tensor", .message = std::move(message), .expected = "1"});
}

std::int64_t TensorSplit::divided(std::int64_t n, Part part) const {
  const auto share = share_of(n, part);
  if (!share) fail(fmt::format("{} ranks cannot divide a width of {} evenly", ranks_, n));
  return *share;
}

Extent TensorSplit::local(Extent extent, const Layout& layout) const {
  extent.per = divided(extent.per, layout.width);
  return of_tokens(extent, layout);
}

/// A rank's tokens, and those that other ranks have given it.
Extent TensorSplit::of_tokens(Extent extent, const Layout& layout) const {
  const std::int64_t shards = layout.tokens ? ranks_ : 1;
  const std::int64_t shared = std::gcd(shards, layout.rows);
  extent.per = checked_mul(extent.per, layout.rows / shared);
  // The rows of images may all be among one rank's tokens.
  if (shards > shared && extent.scale != Scale::images) extent.shards = shards / shared;
  return extent;
}

Graph TensorSplit::split(const Segment& segment) {
  const Graph& graph = segment.graph;
  GraphRewrite rewrite(graph);
  layouts_.assign(graph.values().size(), {});
  narrow_.assign(graph.values().size(), Cut::flow);
  entered_.assign(graph.values().size(), kNone);
  together_.assign(graph.values().size(), kNone);
  by_widened_.assign(graph.values().size(), false);
  expert_rows_ = rows_for_experts(graph, cuts_);
  for (const Input& in : graph.inputs()) {
    Layout& s = layouts_[static_cast<std::size_t>(in.value)];
    s.tokens = by_tokens_ && in.kind == InputKind::chained;
    rewrite.input(in, local(graph.value(in.value).extent, s));
  }
  for (const Op& op : graph.ops()) split_op(rewrite, op);
  return rewrite.finish();
}

void TensorSplit::split_op(GraphRewrite& w, const Op& op) {
  switch (op.kind) {
    case OpKind::linear:
    case OpKind::fused_linear_loss:
      split_linear(w, op);
      return;
    case OpKind::grouped_linear:
      split_experts(w, op);
      return;
    case OpKind::embedding:
      split_embedding(w, op);
      return;
    case OpKind::parameter:
      hand_on_parameter(w, op);
      return;
    default:
      hand_on(w, op);
  }
}

void split_tensors(Model& model, const Plan& plan, SplitStyle style) {
  TensorSplit(model, plan, style).run();
}

}  // namespace shardplan
