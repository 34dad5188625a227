#include "lint/rules/host/family.h"

namespace shardplan::lint_rules::host {

LintRule pinned_by_default() {
  return {
      .rule =
          {
              .id = "host.pinned-by-default"_rule,
              .severity = Severity::note,
              .title = "Offload buffers are pinned by default",
              .explanation = "From 0.19.5 on pin_memory is true unless it is said otherwise.",
              .source = "deepspeed/runtime/zero/offload_config.py",
              .advice = "Write pin_memory, whichever is meant.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            for (const std::string block :
                 {"zero_optimization.offload_optimizer", "zero_optimization.offload_param"}) {
              const std::string key = block + ".pin_memory";
              if (s.values.maybe_text(block + ".device").value_or("none") == "none") continue;
              if (s.values.given(key) == nullptr && s.values.flag(key))
                report(block, "its buffers are pinned");
            }
          },
  };
}

}  // namespace shardplan::lint_rules::host
