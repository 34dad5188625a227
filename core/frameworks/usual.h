// What frameworks do that do nothing of their own there: values of traits.
#pragma once

#include "frameworks/traits.h"
#include "program/tape.h"
#include "saving/rules.h"

namespace shardplan::usual {

inline ExpertExchange dispatches_tokens(const Plan&) {
  return ExpertExchange::dispatcher;
}
inline ExpertExchange has_all_tokens(const Plan&) {
  return ExpertExchange::same_tokens;
}
inline KeyExchange passes_keys_round(const Plan&) {
  return KeyExchange::ring;
}
std::optional<DivisionProblem> no_options_problem(const Framework& framework);
std::optional<DivisionProblem> no_plan_problem(const Plan& plan);
std::optional<DivisionProblem> no_pipeline_problem(const Plan& plan);
std::optional<DivisionProblem> no_sharding_problem(const Model& model, const Plan& plan);
inline void builds_as_written(const Plan&, BuildOptions&) {}

/// Modules run in the parameters' type, or under autocast; adapters are fp32.
Regime regime(const Plan& plan);

std::int64_t all_replicas(const Plan& plan);
inline std::int64_t undivided(const Plan&, Category) {
  return 1;
}
inline bool never(const Plan&) {
  return false;
}
inline bool always(const Plan&) {
  return true;
}

/// Where there are several copies of the states, those that divide one.
std::int64_t shard_group(const Plan& plan);
inline HopRanks one_hop(const Plan&) {
  return {};
}
/// A mesh of the plan's degrees: the world's communicator, and one for each dimension that is not
/// the world (torch/distributed/device_mesh.py).
void mesh_communicators(CommunicatorList& list, const Plan& plan);
inline std::int64_t no_foreign_contexts(const Plan&) {
  return 0;
}

inline std::int64_t one_graph(const Plan&) {
  return 0;
}

inline void plain_tape(const Plan&, const Segment&, TapeOptions&) {}
/// Of programs in which histories of allocations have shown autograd's own order.
inline void autograd_tape(const Plan&, const Segment&, TapeOptions& options) {
  options.autograd_products = true;
}
/// Where gradients stay in the tensors in which autograd makes them.
inline void autograd_tape_with_sums(const Plan&, const Segment&, TapeOptions& options) {
  options.autograd_products = options.takes_sums = true;
}
/// torch.utils.checkpoint's own, or in PyTorch's save_on_cpu (transformers'
/// gradient_checkpointing_enable(offload=True), accelerate's activation_checkpointing_offload).
SavedInput saved_input(const Plan& plan);
/// What save_on_cpu keeps in pinned blocks.
HostMemory inputs_on_host(const Plan& plan, const ModelRun& run);
/// torch.utils.checkpoint around whatever blocks a program likes.
std::optional<DivisionProblem> no_checkpoint_problem(const Plan& plan);
/// How it accumulates is not a job's to say.
std::optional<bool> no_choice_of_sync(const Plan& plan);
inline std::int64_t no_held_inputs(const Plan&, const ModelRun&) {
  return 0;
}

/// Whole tensors of weights, and of the optimizer, by one rank: torch.save, or transformers'
/// Trainer.
SaveRules saves_whole(const Plan& plan);
/// FSDP's, through torch.distributed.checkpoint or gathered.
SaveRules saves_state_dict(StateDictType type, const Plan& plan);

/// The first rank of each pipeline stage that may be the worst.
std::vector<std::int64_t> first_of_stages(const Model& model, const Plan& plan);
std::vector<std::int64_t> no_ranks(const Plan& plan, std::int64_t rank);

}  // namespace shardplan::usual
