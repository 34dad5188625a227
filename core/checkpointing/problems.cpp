#include "checkpointing/problems.h"

#include <fmt/format.h>

#include "frameworks/registry.h"
#include "parallel/degrees.h"

namespace shardplan {
namespace {

/// What hooks around the step cannot be estimated with.
std::optional<DivisionProblem> offloading_problem(const Plan& plan) {
  if (plan.activation_offloading == ActivationOffloading::none) return std::nullopt;
  const auto problem = [](std::string reason, std::string_view instead) {
    return DivisionProblem{"activation_offloading", std::move(reason), std::string(instead)};
  };
  if (traits_of(plan).is_own_engine)
    return problem(
        "of PyTorch's hooks: the native engine sends what blocks keep by "
        "checkpointing.offload",
        "none, and +offload behind checkpointing (full+offload)");
  if (plan.workload.kind != WorkKind::train)
    return problem("estimated for training of one model alone", "none");
  if (plan.checkpoint_share.offload)
    return problem("beside checkpointing.offload: both send the inputs of checkpointed blocks",
                   "one of them");
  if (plan.compile)
    return problem("in a compiled step: what Inductor keeps under the hooks is not estimated",
                   "none, or compile false");
  if (!traits_of(plan).parameters_stay)
    return problem(
        fmt::format("under {}: it moves parameters after the trainer has noted where they are, so "
                    "that OffloadActivations (TRL 1.16) sends weights to the host too, which is "
                    "not estimated",
                    std::string_view(traits_of(plan).name)),
        "none, or single or ddp; full+offload sends checkpointed inputs alone");
  return std::nullopt;
}

}  // namespace

std::optional<DivisionProblem> checkpointing_problem(const Model& model, const Plan& plan) {
  if (auto found = offloading_problem(plan)) return found;
  if (plan.workload.kind == WorkKind::inference) return std::nullopt;
  const CheckpointShare& share = plan.checkpoint_share;
  // Our own engine sends what blocks keep, whatever that is.
  if (share.offload && !plan.recomputes_blocks() && !traits_of(plan).is_own_engine)
    return DivisionProblem{"checkpointing.offload",
                           "true, and no block is checkpointed: what waits on the host is the "
                           "input of each that is",
                           "policy full, selective_op or blocks"};
  const std::int64_t blocks = block_count(model);
  const std::int64_t asked = plan.keeps_some_blocks() ? std::max(share.count, share.every) : 0;
  if (asked > blocks)
    return DivisionProblem{share.count > 0 ? "checkpointing.count" : "checkpointing.every",
                           fmt::format("{}, and the model has {} blocks", asked, blocks),
                           fmt::format("at most {}", blocks)};
  return traits_of(plan).checkpoint_problem(plan);
}

}  // namespace shardplan
