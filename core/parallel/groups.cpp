#include "parallel/groups.h"

#include <algorithm>

#include "base/checked.h"

namespace shardplan {
namespace {

/// `ranks` GPUs, each `stride` after the one before.
GroupShape shape_of(std::int64_t ranks, std::int64_t stride, const Cluster& cluster) {
  const std::int64_t in_node = std::clamp<std::int64_t>(cluster.gpus_per_node / stride, 1, ranks);
  return {ranks, ceil_div(ranks, in_node)};
}

}  // namespace

std::array<GroupShape, kGroupCount> group_shapes(const Plan& plan) {
  const Parallel& p = plan.parallel;
  const Cluster& cluster = plan.cluster;
  const std::int64_t pieces = p.sequence * p.context;
  const std::int64_t data = plan.data_ranks();
  std::array<GroupShape, kGroupCount> shapes;
  const auto set = [&](Group group, std::int64_t ranks, std::int64_t stride) {
    shapes[static_cast<std::size_t>(group)] = shape_of(ranks, stride, cluster);
  };
  set(Group::tensor, p.tensor, 1);
  set(Group::sequence, p.sequence, p.tensor);
  set(Group::context, p.context, p.tensor * p.sequence);
  // Ranks with parts of the same sequences have the same parameters: their gradients are summed.
  set(Group::data, data * pieces, p.tensor);
  // Experts are divided over the ranks of a stage, next to those that share one.
  const std::int64_t stage = p.tensor * pieces * data;
  const std::int64_t owners = p.expert * p.expert_tensor;
  set(Group::expert, p.expert, p.expert_tensor);
  if (owners > 1) set(Group::expert_data, std::max<std::int64_t>(1, stage / owners), owners);
  set(Group::pipeline, p.pipeline, stage);
  return shapes;
}

std::int64_t communicators(const Plan& plan) {
  const FrameworkKind framework = plan.framework.kind;
  const bool deepspeed = framework == FrameworkKind::deepspeed;
  const bool megatron = framework == FrameworkKind::megatron;
  const std::int64_t world = plan.cluster.world();
  std::int64_t count = deepspeed ? 2 : megatron || world == 1 ? 0 : 1;
  const auto shapes = group_shapes(plan);
  for (std::size_t g = 0; g < shapes.size(); ++g) {
    const bool own = megatron || (deepspeed && static_cast<Group>(g) != Group::data);
    if (shapes[g].ranks > 1 && (shapes[g].ranks < world || own)) ++count;
  }
  return count;
}

}  // namespace shardplan
