#include "questions/other_degrees.h"

#include <fmt/format.h>

#include <optional>

#include "frameworks/registry.h"
#include "parallel/problem.h"

namespace shardplan {
namespace {

/// What goes along with a degree.
void settle(Parallel& p, const Parallel& before) {
  if (p.tensor == 1) p.sequence_parallel = false;
  if (before.expert_tensor == before.tensor) p.expert_tensor = p.tensor;
  if (p.pipeline == 1) p.virtual_pipeline = 1;
  if (p.has_chunks() && p.virtual_pipeline == 1) p.schedule = PipelineSchedule::one_f_one_b;
  const bool as_many = p.pipeline * p.virtual_pipeline == before.pipeline * before.virtual_pipeline;
  if (!as_many) p.stage_layers.clear();
}

/// More or fewer data-parallel ranks take turns so that as many samples make a step.
bool keep_global_batch(Plan& plan, const Plan& before) {
  const std::int64_t samples =
      checked_mul(before.samples_at_once(), before.workload.gradient_accumulation);
  const std::int64_t at_once = plan.samples_at_once();
  if (at_once == 0 || samples % at_once != 0) return false;
  plan.workload.gradient_accumulation = samples / at_once;
  return true;
}

std::optional<Plan> with_degree(const Model& model, const Plan& plan, Degree degree,
                                std::int64_t value) {
  Plan changed = plan;
  changed.parallel.*member_of(degree) = value;
  settle(changed.parallel, plan.parallel);
  if (plan.cluster.world() % changed.parallel.model_ranks() != 0) return std::nullopt;
  if (!keep_global_batch(changed, plan) || division_problem(model, changed)) return std::nullopt;
  return changed;
}

}  // namespace

std::vector<OtherDegrees> other_degrees(const Model& model, const Plan& plan) {
  std::vector<OtherDegrees> all;
  // Processes without data parallelism have nothing but their tensor degree.
  if (!traits_of(plan).data_parallel) return all;
  for (std::size_t i = 0; i < kDegreeNames.size(); ++i) {
    const Degree degree = static_cast<Degree>(i);
    const std::int64_t now = plan.parallel.*member_of(degree);
    if (now == 1) continue;
    std::vector<std::int64_t> values{1, 2 * now};
    if (now > 2) values.insert(values.begin() + 1, now / 2);
    for (const std::int64_t value : values)
      if (auto other = with_degree(model, plan, degree, value))
        all.push_back(
            {fmt::format("{} {} instead of {}", name_of(degree), value, now), std::move(*other)});
  }
  return all;
}

}  // namespace shardplan
