#include "questions/search/axes.h"

#include <algorithm>
#include <memory>

#include "parallel/sharding.h"
#include "questions/search/degree_axes.h"

namespace shardplan {
namespace {

/// What a job keeps beside what is searched: ZeRO++, MiCS, hybrid sharding.
AxisRule shard_groups(const Model& model) {
  return {"its shard groups divide neither these GPUs nor the tensors", degree_axes::kGpuFlag,
          [model = std::make_shared<const Model>(model)](const Plan& p, std::size_t) {
            return sharding_problem(*model, p).has_value();
          }};
}

}  // namespace

std::vector<std::int64_t> sorted_values(std::vector<std::int64_t> values,
                                        std::optional<std::int64_t> also) {
  if (also) values.push_back(*also);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<FrameworkKind> searched_frameworks(const Plan& base, const AxisValues& values) {
  return values.frameworks.empty() ? std::vector{base.framework.kind} : values.frameworks;
}

bool searches(const Plan& base, const AxisValues& values, FrameworkKind framework) {
  const std::vector<FrameworkKind> all = searched_frameworks(base, values);
  return std::find(all.begin(), all.end(), framework) != all.end();
}

SearchSpace make_space(const Model& model, const Plan& plan, const AxisValues& values) {
  SearchSpace space;
  space.base = plan;
  space.axes = {gpu_axis(plan, values), strategy_axis(plan, values)};
  for (Axis& axis : parallel_axes(model, plan, values)) space.axes.push_back(std::move(axis));
  space.axes.back().rules.push_back(shard_groups(model));
  for (Axis& axis :
       std::vector<Axis>{precision_axis(plan, values), optimizer_offload_axis(plan, values),
                         parameter_offload_axis(plan, values)})
    space.axes.push_back(std::move(axis));
  space.states_fixed = space.axes.size();
  for (Axis& axis :
       std::vector<Axis>{checkpointing_axis(model, values), micro_batch_axis(plan, values),
                         accumulation_axis(plan, values)})
    space.axes.push_back(std::move(axis));
  space.work_fixed = space.axes.size();
  for (Axis& axis : std::vector<Axis>{reduce_bucket_axis(model, plan, values),
                                      prefetch_bucket_axis(model, plan, values),
                                      persistence_axis(model, plan, values)})
    space.axes.push_back(std::move(axis));
  return space;
}

}  // namespace shardplan
