#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule fsdp_no_wrap() {
  return {
      .rule =
          {
              .id = "accelerate.fsdp-no-wrap"_rule,
              .severity = Severity::warning,
              .title = "FSDP without a wrapping policy",
              .explanation =
                  "The whole model is one unit: every gather holds all parameters, and sharding "
                  "saves nothing at the peak.",
              .source = "accelerate: utils/dataclasses.py FullyShardedDataParallelPlugin",
              .advice = "Use TRANSFORMER_BASED_WRAP.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.accelerate == nullptr || s.accelerate->distributed_type != "FSDP") return;
            const Json* policy = s.accelerate->fsdp_key("fsdp_auto_wrap_policy");
            if (policy != nullptr && *policy == "NO_WRAP")
              report("fsdp_config.fsdp_auto_wrap_policy", "NO_WRAP gathers the whole model at once",
                     "TRANSFORMER_BASED_WRAP");
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
