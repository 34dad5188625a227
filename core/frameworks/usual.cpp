#include "frameworks/usual.h"

#include "lowering/pipeline/stages.h"
#include "lowering/segments.h"
#include "parallel/communicator_list.h"
#include "parallel/problem.h"
#include "program/pinned_memory.h"
#include "program/program.h"
#include "program/tape.h"
#include "trainers/description.h"

namespace shardplan::usual {

std::optional<DivisionProblem> no_options_problem(const Framework&) {
  return std::nullopt;
}

std::optional<DivisionProblem> no_plan_problem(const Plan&) {
  return std::nullopt;
}
std::optional<DivisionProblem> no_checkpoint_problem(const Plan&) {
  return std::nullopt;
}

std::optional<DivisionProblem> no_pipeline_problem(const Plan&) {
  return std::nullopt;
}

std::optional<DivisionProblem> no_sharding_problem(const Model&, const Plan&) {
  return std::nullopt;
}

Regime regime(const Plan& plan) {
  Regime regime;
  regime.params = plan.kept_type();
  regime.base = plan.precision.compute;
  regime.linear = plan.precision.linear;
  // What was cast to fp32 computes in it, unless autocast says otherwise.
  const bool widened =
      plan.prepares_kbit() && !plan.precision.autocast() && !plan.autocasts_forward();
  regime.compute = widened ? regime.params : plan.precision.compute;
  return regime;
}

std::int64_t all_replicas(const Plan& plan) {
  return plan.replicas();
}

std::int64_t shard_group(const Plan& plan) {
  return plan.copies() > 1 ? plan.shard_ranks() : 0;
}

void mesh_communicators(CommunicatorList& list, const Plan& plan) {
  if (plan.cluster.world() == 1) return;
  list.add("world", list.world(), GroupUse::collectives);
  list.add_divided(Group::sequence, GroupUse::all_to_all);
  if (plan.parallel.tensor > 1)
    list.add_dimension("tensor", plan.parallel.tensor, list.shape(Group::tensor));
}

std::optional<bool> no_choice_of_sync(const Plan&) {
  return std::nullopt;
}

SavedInput saved_input(const Plan& plan) {
  SavedInput how;
  how.on_host = plan.sends_inputs();
  how.beside = plan.activation_offloading == ActivationOffloading::streams;
  return how;
}

HostMemory inputs_on_host(const Plan& plan, const ModelRun& run) {
  HostMemory host;
  if (!plan.sends_inputs()) return host;
  std::int64_t input = 0, place = 0;
  for (const SegmentRun& s : run.segments) {
    host.pinned = checked_add(host.pinned, checked_mul(s.forward.pinned, s.segment->repeat));
    if (!plan.recomputes_blocks()) continue;
    for (std::int64_t k = 0; s.segment->checkpointable && k < s.segment->repeat; ++k, ++place)
      if (!s.others || run.own_tapes.has(place))
        host.pinned = checked_add(host.pinned, pinned_block(input));
    input = s.forward.output_bytes;
  }
  return host;
}

std::vector<std::int64_t> first_of_stages(const Model& model, const Plan& plan) {
  std::vector<std::int64_t> ranks;
  for (const std::int64_t stage : distinct_stages(model, plan.parallel))
    ranks.push_back(stage * (plan.cluster.world() / plan.parallel.pipeline));
  return ranks;
}

std::vector<std::int64_t> no_ranks(const Plan&, std::int64_t) {
  return {};
}

SaveRules saves_whole(const Plan& plan) {
  return {.masters = plan.precision.master.has_value(),
          .files = plan.workload.lora ? "adapter_model.safetensors and optimizer.pt"
                                      : "model.safetensors and optimizer.pt"};
}

SaveRules saves_state_dict(StateDictType type, const Plan& plan) {
  const bool masters = plan.precision.master.has_value();
  if (type == StateDictType::sharded)
    return {.weights = SavedBy::each_rank,
            .states = SavedBy::each_rank,
            .masters = masters,
            .files = "folders of shards, by torch.distributed.checkpoint"};
  return {.masters = masters,
          .weights_apart = plan.trainer->saves_weights_apart,
          .files = "pytorch_model_fsdp.bin and optimizer.bin"};
}

}  // namespace shardplan::usual
