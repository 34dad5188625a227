// All tables in one list.
#include "frameworks/deepspeed/option_table.h"
#include "frameworks/registry.h"
#include "options/tables.h"

namespace shardplan {

std::vector<OptionGroup> all_option_groups() {
  // The job's own first two keys name the model and the cluster; the others come after the objects.
  OptionGroup first = listed("job", job_option_table());
  constexpr std::ptrdiff_t kModelAndCluster = 2;
  OptionGroup rest{"rest", first.path, first.of, {}};
  rest.options.assign(first.options.begin() + kModelAndCluster, first.options.end());
  first.options.resize(kModelAndCluster);

  std::vector<OptionGroup> groups{std::move(first), listed("framework", framework_name_table())};
  for (const FrameworkTraits* framework : all_frameworks())
    groups.push_back(listed(framework->name, *framework->options.get()));
  groups.push_back(listed("moe", kDeepSpeedMoeTable));
  groups.push_back(listed("training", training_table()));
  groups.push_back(listed("lora", lora_table()));
  groups.push_back(listed("kind", kind_option_table()));
  groups.push_back(listed("inference", generation_table()));
  groups.push_back(listed("engine", serving_table()));
  groups.push_back(listed("rlhf", rlhf_table()));
  groups.push_back(listed("hybrid_engine", hybrid_table()));
  groups.push_back(listed("rollout", rollout_table()));
  groups.push_back(listed("parallel", parallel_table()));
  groups.push_back(listed("preset", preset_option_table()));
  groups.push_back(listed("precision", precision_table()));
  groups.push_back(listed("optimizer", optimizer_table()));
  groups.push_back(listed("compile", compile_table()));
  groups.push_back(listed("checkpointing", checkpointing_table()));
  groups.push_back(std::move(rest));
  groups.push_back(listed("cluster", cluster_option_table()));
  return groups;
}

}  // namespace shardplan
