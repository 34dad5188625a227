#include "program/compiled/tied_head.h"

#include <set>

#include "program/compiled/padding.h"

namespace shardplan::compiled {

TiedHead tied_head(const Model& model, const tape::GraphView& view, double balance, bool stays) {
  std::set<ParameterId> tables;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::embedding) tables.insert(op.weight);
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops()) {
      if (op.kind != OpKind::linear || !tables.contains(op.weight)) continue;
      const DType own = view.parameter_type(op.weight);
      const std::int64_t row = view.parameter(op.weight).shape.front();
      const std::int64_t results = elements(segment.graph.value(op.out).extent, view.sizes());
      const ProductSize size{results / row, view.parameter(op.weight).shape.back(), row};
      const bool padded = padded_columns(row, own) != row && may_be_padded(size, balance);
      // Of fp32 the table's gradient waits all the same (RoBERTa and GPT-2, on an H200).
      const bool low = size_of(view.regime().compute) <= 2;
      const bool copies = low && both_take_copies(row, op.bias != kNone);
      return {op.weight, padded && copies && own == view.regime().compute, stays && copies};
    }
  return {};
}

}  // namespace shardplan::compiled
