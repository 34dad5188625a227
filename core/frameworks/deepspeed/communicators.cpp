#include "frameworks/deepspeed/communicators.h"

#include <algorithm>

#include "trainers/description.h"

namespace shardplan {
namespace {

/// runtime/pipe/topology.py PipelineParallelGrid, module.py. Stages send over the world's.
void add_deepspeed_pipeline(CommunicatorList& list, const Plan& plan) {
  const std::int64_t neighbours = list.neighbours();
  list.at("world").peers = {neighbours, neighbours};
  list.add("clone of the world", list.world(), GroupUse::none);
  list.add("model", {plan.parallel.model_ranks(), list.shape(Group::pipeline).nodes},
           GroupUse::collectives);
  list.add(Group::data);
  list.add(Group::pipeline);
  list.add(Group::tensor, plan.parallel.tensor > 1 ? GroupUse::collectives : GroupUse::none);
}

}  // namespace

/// utils/groups.py, zero/mics_utils.py. PyTorch is told each process's device (comm/torch.py), so a
/// group's communicator is opened with the group, used or not.
void deepspeed_communicators(CommunicatorList& list, const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const Parallel& p = plan.parallel;
  list.add("world", list.world(), GroupUse::collectives);
  if (p.pipeline > 1) return add_deepspeed_pipeline(list, plan);
  if (plan.trainer->opens_mesh) {  // groups of more than one rank are below
    if (p.sequence == 1) list.add_dimension("sequence of one", 1, {1, 1});
    if (p.tensor == 1) list.add_dimension("tensor of one", 1, {1, 1});
  }
  if (p.tensor > 1) {
    list.add_dimension("data", list.ranks(Group::data), list.shape(Group::data));
    list.add_dimension("tensor", p.tensor, list.shape(Group::tensor));
  } else {
    // Gradients are summed over it, and over the world's own go barriers. With Ulysses it is the
    // group of all sequence and data ranks. A model that zero.Init has divided is divided over the
    // world's own, and the clone is not used: found in ten records, read in no source. A base in
    // few bits is loaded whole.
    const bool divided =
        plan.trainer->loads_divided && quantization_of(plan.workload) == Quantization::none;
    const bool used = zero.stage < 3 || !divided;
    list.add("clone of the world", list.world(), used ? GroupUse::collectives : GroupUse::none);
  }
  list.add_divided(Group::sequence, GroupUse::all_to_all);
  if (p.expert > 1) {
    list.add(Group::expert, GroupUse::all_to_all);
    // Stage 0 looks for overflow among the ranks of the experts, too (runtime/utils.py).
    if (zero.stage == 0) list.at(name_of(Group::expert)).collectives = true;
    list.add(Group::expert_data);
  }
  if (zero.quantized_gradients) {
    const bool several = plan.cluster.nodes > 1;
    const std::int64_t in_node = plan.cluster.gpus_per_node;
    list.add("node", {in_node, 1}, several ? GroupUse::all_to_all : GroupUse::none);
    if (several)
      list.add("across-nodes", {plan.cluster.nodes, plan.cluster.nodes}, GroupUse::all_to_all);
  }
  if (zero.has_secondary() || zero.mics()) list.add(Group::shard);
  if (zero.mics()) {
    list.add_divided(Group::replica);
    if (zero.mics_hierarchical_gather) {
      list.add(Group::node);
      list.add(Group::across_nodes);
    }
  }
}

}  // namespace shardplan
