#include "questions/search/axes.h"

#include <algorithm>
#include <memory>

#include "frameworks/planning_registry.h"
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

bool searches(const Plan& base, const AxisValues& values,
              bool (*such)(const FrameworkTraits& framework)) {
  const std::vector<FrameworkKind> all = searched_frameworks(base, values);
  return std::any_of(all.begin(), all.end(),
                     [such](FrameworkKind kind) { return such(traits_of(kind)); });
}

std::vector<AxisRule> framework_rules(std::string_view axis, bool early, const Plan& base,
                                      const AxisValues& values) {
  const RuleContext context{base, !values.pipelines.empty() || base.parallel.pipeline > 1};
  std::vector<AxisRule> rules;
  for (const FrameworkPlanning* framework : all_planning())
    for (FrameworkRule& own : framework->rules(context)) {
      if (own.axis != axis || own.early != early) continue;
      AxisRule rule = std::move(own.rule);
      rule.rules_out = [kind = framework->kind.get(), inner = std::move(rule.rules_out)](
                           const Plan& plan, std::size_t value) {
        return plan.framework.kind == kind && inner(plan, value);
      };
      rules.push_back(std::move(rule));
    }
  return rules;
}

std::vector<AxisRule> joined_rules(std::vector<std::vector<AxisRule>> lists) {
  std::vector<AxisRule> all;
  for (std::vector<AxisRule>& list : lists)
    for (AxisRule& rule : list) all.push_back(std::move(rule));
  return all;
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
  space.axes.push_back(checkpointing_axis(model, values));
  for (Axis& axis : tile_axes(model, plan, values)) space.axes.push_back(std::move(axis));
  space.axes.push_back(micro_batch_axis(plan, values));
  space.axes.push_back(accumulation_axis(plan, values));
  space.work_fixed = space.axes.size();
  for (Axis& axis : std::vector<Axis>{reduce_bucket_axis(model, plan, values),
                                      prefetch_bucket_axis(model, plan, values),
                                      persistence_axis(model, plan, values)})
    space.axes.push_back(std::move(axis));
  return space;
}

}  // namespace shardplan
