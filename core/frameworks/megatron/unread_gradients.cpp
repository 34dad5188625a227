#include "frameworks/megatron/unread_gradients.h"

#include <string>

#include "base/checked.h"
#include "lowering/tensors.h"
#include "model/joint_linears.h"
#include "parallel/cuts.h"
#include "program/tape.h"

namespace shardplan {

UnreadGradients::UnreadGradients(const Model& own, DType type, ParameterId tied) {
  std::map<std::string, Shape> joints;
  const auto visit = [&](auto&& each) {
    for (const ParameterGroup& group : own.groups)
      for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
        const Parameter& p = own.parameters[static_cast<std::size_t>(i)];
        const bool expert = p.kind == ParameterKind::expert && p.shape.size() == 3;
        // A router's gradient takes autograd's way.
        if (!p.trainable || is_router(p.name)) continue;
        if (expert || p.kind == ParameterKind::linear) each(i, p, expert);
      }
  };
  visit([&](ParameterId, const Parameter& p, bool expert) {
    Shape& whole = joints[joined_name(p.name)];
    whole.first += p.shape[expert ? 1 : 0];
    whole.second += expert ? p.numel / p.shape.front() : p.numel;
  });
  visit(
      [&](ParameterId id, const Parameter& p, bool) { shapes_[id] = joints[joined_name(p.name)]; });
  if (tied != kNone) shapes_[tied] = {0, own.parameters[static_cast<std::size_t>(tied)].numel};
  for (const auto& [id, shape] : shapes_)
    missing_[shape] = round_up(shape.second * size_of(type), kAllocationUnit);
}

std::vector<Event> UnreadGradients::all() const {
  std::vector<Event> list;
  for (const auto& [shape, bytes] : missing_) append_tensors(list, Category::workspace, bytes, 1);
  return list;
}

std::int64_t UnreadGradients::made_with(ParameterId id) {
  const auto shape = shapes_.find(id);
  if (shape == shapes_.end()) return 0;
  const auto missing = missing_.find(shape->second);
  if (missing == missing_.end()) return 0;
  const std::int64_t bytes = missing->second;
  missing_.erase(missing);
  return bytes;
}

}  // namespace shardplan
