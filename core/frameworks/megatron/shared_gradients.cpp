#include "frameworks/megatron/shared_gradients.h"

#include <set>

#include "base/checked.h"
#include "model/tied_head.h"

namespace shardplan {

ParameterId tied_table(const Model& model) {
  const Op* product = tied_product(model).op;
  if (product == nullptr) return kNone;
  return model.parameters[static_cast<std::size_t>(product->weight)].trainable ? product->weight
                                                                               : kNone;
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
