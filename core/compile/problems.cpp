#include "compile/problems.h"

namespace shardplan {

std::optional<DivisionProblem> compile_problem(const Plan& plan) {
  if (!plan.compile) return std::nullopt;
  if (plan.workload.kind != WorkKind::train)
    return DivisionProblem{"compile", "torch.compile is for training here, and the workload is not",
                           "workload.kind train, or compile false"};
  return DivisionProblem{
      "compile",
      "a step compiled by Inductor cannot be estimated yet: it keeps other tensors than an eager "
      "one, with a mask of the attention among them",
      "false, which is an eager step: its estimate was 39 % above the one compiled run measured so "
      "far"};
}

}  // namespace shardplan
