#include "checkpointing/problems.h"

#include <fmt/format.h>

#include "frameworks/registry.h"
#include "parallel/degrees.h"

namespace shardplan {

std::optional<DivisionProblem> checkpointing_problem(const Model& model, const Plan& plan) {
  if (plan.workload.kind == WorkKind::inference) return std::nullopt;
  const CheckpointShare& share = plan.checkpoint_share;
  if (share.offload && !plan.recomputes_blocks())
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
