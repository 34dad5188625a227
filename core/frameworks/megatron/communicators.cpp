#include "frameworks/megatron/communicators.h"

#include <algorithm>

namespace shardplan {
namespace {

/// pipeline_parallel/p2p_communication.py. In order, a batch of sends and receives goes over the
/// group's communicator; interleaved stages send one by one, for which PyTorch opens one with each
/// neighbour, and with two stages one a direction.
void add_megatron_pipeline(CommunicatorList& list, const Plan& plan) {
  const GroupShape pair{2, std::min<std::int64_t>(2, list.shape(Group::pipeline).nodes)};
  if (plan.parallel.virtual_pipeline == 1) {
    const std::int64_t neighbours = list.neighbours();
    list.add(Group::pipeline, GroupUse::none);
    list.at(name_of(Group::pipeline)).peers = {neighbours, neighbours};
  } else {
    const bool two = plan.parallel.pipeline == 2;
    list.add("next stage", pair, GroupUse::none);
    list.at("next stage").peers = {1, two ? 0 : 1};
    list.add("previous stage", pair, GroupUse::none);
    list.at("previous stage").peers = {two ? 0 : 1, 1};
  }
}

}  // namespace

/// core/parallel_state.py makes many groups; a communicator is opened where one is first used.
void megatron_communicators(CommunicatorList& list, const Plan& plan) {
  const Parallel& p = plan.parallel;
  list.add("world", list.world(), GroupUse::collectives);
  // The loss over a divided vocabulary is summed over the group even of one rank.
  if (p.tensor > 1 || list.last_stage()) list.add(Group::tensor);
  list.add(Group::data);
  if (plan.framework.megatron.distributed_optimizer)
    list.add("optimizer instance", list.world(), GroupUse::collectives);  // the gradients' norm
  else
    list.add("model", {p.tensor * p.pipeline, list.shape(Group::pipeline).nodes},
             GroupUse::collectives);
  list.add_divided(Group::sequence, GroupUse::all_to_all);
  list.add_divided(Group::context, GroupUse::ring);
  if (p.pipeline > 1) add_megatron_pipeline(list, plan);
  if (p.expert > 1) {
    list.add(Group::expert, GroupUse::all_to_all);
    // The counts of tokens are gathered, transformer/moe/token_dispatcher.py.
    const std::int64_t owners = p.expert * p.expert_tensor;
    list.add("expert and tensor", {owners, list.shape(Group::expert).nodes}, GroupUse::collectives);
    list.add(Group::expert_data);
  }
}

}  // namespace shardplan
