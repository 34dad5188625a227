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

/// Whether gradients go in two hops (coalesced_collectives.py all_to_all_quant_reduce).
bool quantizes_gradients(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  return plan.framework.kind == FrameworkKind::deepspeed && zero.stage == 3 && !zero.mics() &&
         zero.quantized_gradients && plan.cluster.nodes > 1;
}

/// The ranks of a shard group: those of one copy of the states, or hpZ's (utils/groups.py
/// _create_zero_param_parallel_group). 0: there is no such group beside the data ranks'.
std::int64_t shard_group(const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const bool deepspeed = plan.framework.kind == FrameworkKind::deepspeed;
  if (deepspeed && zero.has_secondary()) return std::min(zero.hpz_partition_size, plan.replicas());
  const bool own = deepspeed && zero.mics();
  return own || plan.copies() > 1 ? plan.shard_ranks() : 0;
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
  if (const std::int64_t ranks = shard_group(plan); ranks > 0) {
    set(Group::shard, ranks, p.tensor);
    if (plan.copies() > 1) set(Group::replica, plan.copies(), p.tensor * ranks);
  }
  const std::int64_t in_node = cluster.gpus_per_node;
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  if (quantizes_gradients(plan)) {
    set(Group::node, in_node, 1);
    set(Group::across_nodes, cluster.nodes, in_node);
  } else if (plan.framework.kind == FrameworkKind::deepspeed && zero.mics() &&
             zero.mics_hierarchical_gather) {
    set(Group::node, in_node, 1);
    set(Group::across_nodes, plan.shard_ranks() / in_node, in_node);
  }
  // Experts are divided over the ranks of a stage, next to those that share one.
  const std::int64_t stage = p.tensor * pieces * data;
  const std::int64_t owners = p.expert * p.expert_tensor;
  set(Group::expert, p.expert, p.expert_tensor);
  if (owners > 1) set(Group::expert_data, std::max<std::int64_t>(1, stage / owners), owners);
  set(Group::pipeline, p.pipeline, stage);
  return shapes;
}

}  // namespace shardplan
