#include "model/tied_head.h"

#include <set>

namespace shardplan {

TiedProduct tied_product(const Model& model) {
  std::set<ParameterId> tables;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::embedding) tables.insert(op.weight);
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::linear && tables.contains(op.weight)) return {&segment.graph, &op};
  return {};
}

}  // namespace shardplan
