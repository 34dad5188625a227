#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule expert_ranks() {
  return {
      .rule =
          {
              .id = "ds.expert-ranks"_rule,
              .severity = Severity::error,
              .title = "autoep_size does not divide the ranks",
              .explanation = "Experts are distributed over groups of equal size.",
              .source = "deepspeed/module_inject/auto_ep_config.py",
              .advice = "Choose a divisor of the ranks.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "expert_parallel.autoep_size";
            if (!s.values.flag("expert_parallel.enabled") || !s.context.world_size) return;
            const std::int64_t experts = s.values.integer(kKey);
            if (*s.context.world_size % experts != 0)
              report(kKey, say("{} does not divide the {} ranks", experts, *s.context.world_size),
                     say("a divisor of {}", *s.context.world_size));
          },
  };
}

}  // namespace shardplan::config_rules::parallel
