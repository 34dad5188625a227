// All tables in one list, each beside the jobs that have it.
#include "options/groups.h"

#include <algorithm>

#include "frameworks/deepspeed/option_table.h"
#include "frameworks/registry.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr WorkKinds kTrainsOne{WorkKind::train}, kGenerates{WorkKind::inference},
    kSeveralModels{WorkKind::rlhf}, kTrains{WorkKind::train, WorkKind::rlhf};

/// An object within "framework" is of those whose table has its key.
bool has_moe(const FrameworkTraits& framework) {
  return std::ranges::any_of(framework.options.get()->options,
                             [](const Option<Framework>& o) { return o.info.key == "moe"; });
}

bool has_hybrid_engine(const FrameworkTraits& framework) {
  return framework.has_hybrid_engine;
}

}  // namespace

std::vector<ScopedOptions> all_scoped_options() {
  // The job's own first two keys name the model and the cluster; the others come after the objects.
  OptionGroup first = listed("job", job_option_table());
  constexpr std::ptrdiff_t kModelAndCluster = 2;
  OptionGroup rest{"rest", first.path, first.of, {}};
  rest.options.assign(first.options.begin() + kModelAndCluster, first.options.end());
  first.options.resize(kModelAndCluster);

  std::vector<ScopedOptions> all;
  const auto add = [&](OptionGroup group, OptionScope scope) {
    all.push_back({std::move(group), scope});
  };
  add(std::move(first), {.of_run = false});
  add(listed("framework", framework_name_table()), {.of_each_model = true});
  for (const FrameworkTraits* framework : all_frameworks())
    add(listed(framework->name, *framework->options.get()),
        {.owner = framework, .of_each_model = true});
  add(listed("moe", kDeepSpeedMoeTable), {.frameworks = has_moe});
  add(listed("training", training_table()), {.works = kTrainsOne});
  add(listed("lora", lora_table()), {.works = kTrains});
  add(listed("kind", kind_option_table()), {});
  add(listed("inference", generation_table()), {.works = kGenerates});
  add(listed("engine", serving_table()), {.works = kGenerates});
  add(listed("rlhf", rlhf_table()), {.works = kSeveralModels});
  add(listed("hybrid_engine", hybrid_table()),
      {.works = kSeveralModels, .frameworks = has_hybrid_engine});
  add(listed("rollout", rollout_table()), {.works = kSeveralModels});
  add(listed("parallel", parallel_table()), {});
  add(listed("preset", preset_option_table()), {.of_each_model = true});
  add(listed("precision", precision_table()), {.of_each_model = true});
  add(listed("optimizer", optimizer_table()), {.works = kTrains, .of_each_model = true});
  add(listed("compile", compile_table()), {});
  add(listed("checkpointing", checkpointing_table()), {.works = kTrains, .of_each_model = true});
  add(std::move(rest), {.of_each_model = true});
  add(listed("cluster", cluster_option_table()), {.of_run = false});
  return all;
}

std::vector<OptionGroup> all_option_groups() {
  std::vector<OptionGroup> groups;
  for (ScopedOptions& options : all_scoped_options()) groups.push_back(std::move(options.group));
  return groups;
}

bool applies(const OptionScope& scope, const Plan& plan) {
  const FrameworkTraits& framework = traits_of(plan);
  return scope.works.has(plan.workload.kind) &&
         (scope.owner == nullptr || scope.owner == &framework) &&
         (scope.frameworks == nullptr || scope.frameworks(framework));
}

}  // namespace shardplan
