#include "parallel/groups.h"

#include <algorithm>

#include "base/checked.h"
#include "frameworks/registry.h"

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
  const FrameworkTraits& framework = traits_of(plan);
  if (const std::int64_t ranks = framework.shard_group(plan); ranks > 0) {
    set(Group::shard, ranks, p.tensor);
    if (plan.copies() > 1) set(Group::replica, plan.copies(), p.tensor * ranks);
  }
  if (const HopRanks hops = framework.hops(plan); hops.in_node > 0) {
    set(Group::node, hops.in_node, 1);
    set(Group::across_nodes, hops.across_nodes, hops.in_node);
  }
  // Experts are divided over the ranks of a stage, next to those that share one.
  const std::int64_t stage = p.tensor * pieces * data;
  const std::int64_t owners = p.expert * p.expert_tensor;
  set(Group::expert, p.expert, p.expert_tensor);
  // All ranks that share layers may have each expert, of rows of their own.
  if (owners > 1 || p.tensor > 1)
    set(Group::expert_data, std::max<std::int64_t>(1, stage / owners), owners);
  set(Group::pipeline, p.pipeline, stage);
  return shapes;
}

}  // namespace shardplan
