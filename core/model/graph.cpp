#include "model/graph.h"

#include <utility>

namespace shardplan {

ValueId Graph::add_value(Extent extent) {
  values_.push_back({extent, logits_});
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Graph::chained_input(Extent extent) {
  const ValueId id = add_value(extent);
  inputs_.push_back({id, InputKind::chained, kNone});
  return id;
}

ValueId Graph::shared_input(std::int32_t shared, Extent extent) {
  const ValueId id = add_value(extent);
  inputs_.push_back({id, InputKind::shared, shared});
  return id;
}

ValueId Graph::op(Op op, Extent out) {
  op.out = add_value(out);
  op.autocast = op.autocast && autocast_;
  op.all_tokens = all_tokens_;
  op.tiled = op.tiled || tiled_;
  ops_.push_back(op);
  return op.out;
}

ValueId Graph::op(Function function, std::array<ValueId, 3> in, Extent out) {
  Op op{OpKind::function, in};
  op.function = add_function(std::move(function));
  return this->op(op, out);
}

std::int32_t Graph::add_function(Function function) {
  functions_.push_back(std::move(function));
  return static_cast<std::int32_t>(functions_.size()) - 1;
}

ValueId Graph::fused_op(Op op, const FusedKernel* kernel, Extent out) {
  const bool reaches = autocast_;
  op.fused = kernel;
  autocast_ = reaches && kernel == nullptr;
  const ValueId result = this->op(op, out);
  autocast_ = reaches;
  return result;
}

void Graph::renumber(ModuleId modules, ParameterId parameters, std::int32_t shared) {
  for (Op& op : ops_) {
    if (op.module != kNone) op.module += modules;
    if (op.weight != kNone) op.weight += parameters;
    if (op.bias != kNone) op.bias += parameters;
  }
  for (Input& in : inputs_)
    if (in.shared != kNone) in.shared += shared;
}

}  // namespace shardplan
