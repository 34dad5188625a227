#include "program/compiled/tied_head.h"

#include <set>

#include "program/compiled/padding.h"

namespace shardplan::compiled {
namespace {

struct Product {
  const Graph* graph = nullptr;
  const Op* op = nullptr;  ///< nullptr: no linear multiplies by a table of embeddings
};

Product tied_product(const Model& model) {
  std::set<ParameterId> tables;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::embedding) tables.insert(op.weight);
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::linear && tables.contains(op.weight)) return {&segment.graph, &op};
  return {};
}

}  // namespace

bool has_tied_head(const Model& model) {
  return tied_product(model).op != nullptr;
}

TiedHead tied_head(const Model& model, const tape::GraphView& view, double balance, bool stays) {
  const auto [graph, product] = tied_product(model);
  if (product == nullptr) return {};
  const DType own = view.parameter_type(product->weight);
  const std::int64_t row = view.parameter(product->weight).shape.front();
  const std::int64_t results = elements(graph->value(product->out).extent, view.sizes());
  const ProductSize size{results / row, view.parameter(product->weight).shape.back(), row};
  const bool padded = padded_columns(row, own) != row && may_be_padded(size, balance);
  // Of fp32 the table's gradient waits all the same (RoBERTa and GPT-2, on an H200).
  const bool low = size_of(view.regime().compute) <= 2;
  const bool copies = low && both_take_copies(row, product->bias != kNone);
  return {product->weight, padded && copies && own == view.regime().compute, stays && copies};
}

}  // namespace shardplan::compiled
