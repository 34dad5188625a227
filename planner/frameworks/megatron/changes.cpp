#include "frameworks/megatron/changes.h"

#include <fmt/format.h>

#include "parallel/problem.h"
#include "parallel/support.h"

namespace shardplan {

void megatron_changes(std::vector<Change>& changes, const Model& model, const Plan& plan) {
  const auto add = [&](std::string what, std::string setting, auto&& apply) {
    Plan changed = plan;
    apply(changed);
    if (division_problem(model, changed)) return;
    changes.push_back({std::move(what), std::move(setting), apply, "degrees"});
  };
  const Parallel& now = plan.parallel;
  if (now.tensor > 1 && !now.sequence_parallel)
    add("tokens divided among tensor-parallel GPUs", "--sequence-parallel",
        [](Plan& p) { p.parallel.sequence_parallel = true; });
  const auto twice = [&](Degree degree, fmt::string_view what, std::string_view argument) {
    const std::int64_t degrees = 2 * (now.*member_of(degree));
    add(fmt::format(fmt::runtime(what), degrees), fmt::format("{} {}", argument, degrees),
        [degree](Plan& p) {
          const bool shares_experts = p.parallel.expert_tensor == p.parallel.tensor;
          p.parallel.*member_of(degree) *= 2;
          if (degree == Degree::tensor) p.parallel.sequence_parallel = true;
          if (shares_experts) p.parallel.expert_tensor = p.parallel.tensor;
          p.workload.gradient_accumulation *= 2;
        });
  };
  if (2 * now.tensor <= plan.cluster.gpus_per_node)
    twice(Degree::tensor, "each layer over {} GPUs", "--tensor-model-parallel-size");
  twice(Degree::pipeline, "the layers over {} stages", "--pipeline-model-parallel-size");
  if (now.sequence == 1)
    twice(Degree::context, "each sequence over {} GPUs", "--context-parallel-size");
}

}  // namespace shardplan
