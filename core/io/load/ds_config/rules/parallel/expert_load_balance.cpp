#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule expert_load_balance() {
  return {
      .rule =
          {
              .id = "ds.expert-load-balance"_rule,
              .severity = Severity::error,
              .title = "expert_parallel.load_balance_coeff",
              .explanation = "Only null is implemented.",
              .source = "deepspeed/module_inject/auto_ep_config.py",
              .advice = "Remove it.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "expert_parallel.load_balance_coeff";
            if (const Json* coefficient = s.values.given(kKey))
              report(kKey, say("found {}, which is not supported", coefficient->dump()), "null");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
