#include "parallel/communicators.h"

#include <algorithm>

#include "parallel/groups.h"

namespace shardplan {
namespace {

enum class Use : std::uint8_t {
  none,  ///< opened and never used
  collectives,
  all_to_all,  ///< every rank sends to every other
  ring,        ///< to the next rank, from the one before
};

/// Collects communicators group by group.
class List {
 public:
  List(const Plan& plan, std::int64_t rank)
      : plan_(plan), shapes_(group_shapes(plan)), rank_(rank) {}

  GroupShape world() const { return {plan_.cluster.world(), plan_.cluster.nodes}; }
  GroupShape shape(Group group) const { return shapes_[static_cast<std::size_t>(group)]; }
  std::int64_t ranks(Group group) const { return shape(group).ranks; }

  void add(std::string_view name, GroupShape shape, Use use) {
    Communicator c{name, shape, use == Use::collectives, {}};
    if (use == Use::all_to_all) c.peers.sends = c.peers.receives = shape.ranks - 1;
    if (use == Use::ring && shape.ranks > 1) c.peers.sends = c.peers.receives = 1;
    all_.push_back(c);
  }
  void add(Group group, Use use = Use::collectives) { add(name_of(group), shape(group), use); }
  /// Where the framework opens none for a single rank.
  void add_divided(Group group, Use use = Use::collectives) {
    if (ranks(group) > 1) add(group, use);
  }
  /// A dimension of a DeviceMesh: the world's own where it spans that, else one of its own, however
  /// few ranks it has (torch/distributed/device_mesh.py _init_one_process_group).
  void add_dimension(std::string_view name, std::int64_t ranks, GroupShape shape) {
    if (ranks != plan_.cluster.world())
      add(name, {ranks, ranks > 1 ? shape.nodes : 1}, Use::collectives);
  }
  /// Of one that was added: what else goes over it.
  Communicator& at(std::string_view name) {
    return *std::find_if(all_.begin(), all_.end(),
                         [&](const Communicator& c) { return c.name == name; });
  }

  /// This rank's place in the pipeline.
  std::int64_t stage() const {
    return rank_ / std::max<std::int64_t>(1, plan_.cluster.world() / plan_.parallel.pipeline);
  }
  bool first_stage() const { return stage() == 0; }
  bool last_stage() const { return stage() == plan_.parallel.pipeline - 1; }
  /// Stages before and after this one.
  std::int64_t neighbours() const { return (first_stage() ? 0 : 1) + (last_stage() ? 0 : 1); }

  std::vector<Communicator> take() { return std::move(all_); }

 private:
  const Plan& plan_;
  std::array<GroupShape, kGroupCount> shapes_;
  std::int64_t rank_;
  std::vector<Communicator> all_;
};

/// DDP, FSDP2, transformers' tensor and expert parallelism: a mesh of the plan's degrees.
void add_pytorch(List& list, const Plan& plan) {
  if (plan.cluster.world() == 1) return;
  list.add("world", list.world(), Use::collectives);
  if (const auto shard = plan.framework.fsdp2.hybrid_shard_size;
      plan.framework.kind == FrameworkKind::fsdp2 && shard) {
    list.add_dimension("replica", plan.copies(), list.shape(Group::replica));
    list.add_dimension("shard", *shard, list.shape(Group::shard));
  } else if (plan.parallel.tensor > 1) {
    if (plan.framework.kind == FrameworkKind::fsdp2)
      list.add_dimension("data", list.ranks(Group::data), list.shape(Group::data));
    list.add_dimension("tensor", plan.parallel.tensor, list.shape(Group::tensor));
  }
}

/// runtime/pipe/topology.py PipelineParallelGrid, module.py. Stages send over the world's.
void add_deepspeed_pipeline(List& list, const Plan& plan) {
  const std::int64_t neighbours = list.neighbours();
  list.at("world").peers = {neighbours, neighbours};
  list.add("clone of the world", list.world(), Use::none);
  list.add("model", {plan.parallel.model_ranks(), list.shape(Group::pipeline).nodes},
           Use::collectives);
  list.add(Group::data);
  list.add(Group::pipeline);
  list.add(Group::tensor, plan.parallel.tensor > 1 ? Use::collectives : Use::none);
}

/// utils/groups.py, zero/mics_utils.py. PyTorch is told each process's device (comm/torch.py), so a
/// group's communicator is opened with the group, used or not.
void add_deepspeed(List& list, const Plan& plan) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const Parallel& p = plan.parallel;
  list.add("world", list.world(), Use::collectives);
  if (p.pipeline > 1) return add_deepspeed_pipeline(list, plan);
  if (p.tensor > 1) {
    list.add_dimension("data", list.ranks(Group::data), list.shape(Group::data));
    list.add_dimension("tensor", p.tensor, list.shape(Group::tensor));
  } else {
    // Gradients are summed over it, and over the world's own go barriers. With Ulysses it is the
    // group of all sequence and data ranks.
    list.add("clone of the world", list.world(), Use::collectives);
  }
  list.add_divided(Group::sequence, Use::all_to_all);
  if (p.expert > 1) {
    list.add(Group::expert, Use::all_to_all);
    // Stage 0 looks for overflow among the ranks of the experts, too (runtime/utils.py).
    if (zero.stage == 0) list.at(name_of(Group::expert)).collectives = true;
    list.add(Group::expert_data);
  }
  if (zero.quantized_gradients) {
    const bool several = plan.cluster.nodes > 1;
    const std::int64_t in_node = plan.cluster.gpus_per_node;
    list.add("node", {in_node, 1}, several ? Use::all_to_all : Use::none);
    if (several)
      list.add("across-nodes", {plan.cluster.nodes, plan.cluster.nodes}, Use::all_to_all);
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

/// inference/engine.py: nothing is opened for one GPU.
void add_injected(List& list, const KernelInjection& injection) {
  if (injection.tensor_parallel == 1) return;
  list.add("world", list.world(), Use::collectives);
  list.add("tensor", {injection.tensor_parallel, 1}, Use::collectives);
}

/// pipeline_parallel/p2p_communication.py. In order, a batch of sends and receives goes over the
/// group's communicator; interleaved stages send one by one, for which PyTorch opens one with each
/// neighbour, and with two stages one a direction.
void add_megatron_pipeline(List& list, const Plan& plan) {
  const GroupShape pair{2, std::min<std::int64_t>(2, list.shape(Group::pipeline).nodes)};
  if (plan.parallel.virtual_pipeline == 1) {
    const std::int64_t neighbours = list.neighbours();
    list.add(Group::pipeline, Use::none);
    list.at(name_of(Group::pipeline)).peers = {neighbours, neighbours};
  } else {
    const bool two = plan.parallel.pipeline == 2;
    list.add("next stage", pair, Use::none);
    list.at("next stage").peers = {1, two ? 0 : 1};
    list.add("previous stage", pair, Use::none);
    list.at("previous stage").peers = {two ? 0 : 1, 1};
  }
}

/// core/parallel_state.py makes many groups; a communicator is opened where one is first used.
void add_megatron(List& list, const Plan& plan) {
  const Parallel& p = plan.parallel;
  list.add("world", list.world(), Use::collectives);
  // The loss over a divided vocabulary is summed over the group even of one rank.
  if (p.tensor > 1 || list.last_stage()) list.add(Group::tensor);
  list.add(Group::data);
  if (plan.framework.megatron.distributed_optimizer)
    list.add("optimizer instance", list.world(), Use::collectives);  // the gradients' norm
  else
    list.add("model", {p.tensor * p.pipeline, list.shape(Group::pipeline).nodes}, Use::collectives);
  list.add_divided(Group::sequence, Use::all_to_all);
  list.add_divided(Group::context, Use::ring);
  if (p.pipeline > 1) add_megatron_pipeline(list, plan);
  if (p.expert > 1) {
    list.add(Group::expert, Use::all_to_all);
    // The counts of tokens are gathered, transformer/moe/token_dispatcher.py.
    const std::int64_t owners = p.expert * p.expert_tensor;
    list.add("expert and tensor", {owners, list.shape(Group::expert).nodes}, Use::collectives);
    list.add(Group::expert_data);
  }
}

}  // namespace

std::vector<Communicator> communicators(const Plan& plan, std::int64_t rank) {
  List list(plan, rank);
  if (const auto& injection = plan.workload.generation.injection;
      plan.workload.kind == WorkKind::inference && injection) {
    add_injected(list, *injection);
    return list.take();
  }
  switch (plan.framework.kind) {
    case FrameworkKind::single:
    case FrameworkKind::ddp:
    case FrameworkKind::fsdp2:
      add_pytorch(list, plan);
      break;
    case FrameworkKind::deepspeed:
      add_deepspeed(list, plan);
      break;
    case FrameworkKind::megatron:
      add_megatron(list, plan);
      break;
    case FrameworkKind::native:
      if (plan.cluster.world() > 1) list.add("world", list.world(), Use::collectives);
      break;
  }
  return list.take();
}

std::int64_t foreign_contexts(const Plan& plan) {
  const bool autotp = plan.framework.kind == FrameworkKind::deepspeed &&
                      plan.workload.kind == WorkKind::train && plan.parallel.pipeline == 1;
  return autotp ? plan.parallel.tensor - 1 : 0;
}

}  // namespace shardplan
