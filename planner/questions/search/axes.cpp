#include "questions/search/axes.h"

#include <algorithm>

namespace shardplan {

std::vector<std::int64_t> sorted_values(std::vector<std::int64_t> values,
                                        std::optional<std::int64_t> also) {
  if (also) values.push_back(*also);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

SearchSpace make_space(const Model& model, const Plan& plan, const AxisValues& values) {
  SearchSpace space;
  space.base = plan;
  space.axes = {gpu_axis(plan, values), strategy_axis(plan, values), precision_axis(plan, values),
                optimizer_offload_axis(plan, values), parameter_offload_axis(plan, values)};
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
