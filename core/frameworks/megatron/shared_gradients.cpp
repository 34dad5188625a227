#include "frameworks/megatron/shared_gradients.h"

#include <set>

#include "base/checked.h"

namespace shardplan {

ParameterId tied_table(const Model& model) {
  const auto uses = [&](OpKind kind, ParameterId id) {
    for (const Segment& segment : model.segments)
      for (const Op& op : segment.graph.ops())
        if (op.kind == kind && op.weight == id) return true;
    return false;
  };
  for (std::size_t i = 0; i < model.parameters.size(); ++i) {
    const auto id = static_cast<ParameterId>(i);
    const Parameter& p = model.parameters[i];
    if (p.kind == ParameterKind::embedding && p.trainable && uses(OpKind::embedding, id) &&
        uses(OpKind::linear, id))
      return id;
  }
  return kNone;
}

std::int64_t whole_elements(const Model& model) {
  std::int64_t elements = 0;
  std::set<ParameterId> seen;
  for (const Segment& segment : model.segments) {
    if (!segment.whole) continue;
    for (const Op& op : segment.graph.ops())
      for (const ParameterId id : {op.weight, op.bias}) {
        if (id == kNone || !seen.insert(id).second) continue;
        const Parameter& p = model.parameters[static_cast<std::size_t>(id)];
        if (p.trainable) elements += checked_mul(p.numel, segment.repeat);
      }
  }
  return elements;
}

}  // namespace shardplan
