#include "base/format.h"
#include "lint/rules/host/family.h"

namespace shardplan::lint_rules::host {

LintRule pinned() {
  return {
      .rule =
          {
              .id = "host.pinned"_rule,
              .severity = Severity::warning,
              .title = "Pinned memory takes most of the host",
              .explanation = "Pinned pages cannot be swapped or shared; drivers, containers and "
                             "WSL limit them "
                             "well below the installed memory.",
              .source = "issues 7150, 3481 of DeepSpeed",
              .advice = "Set pin_memory to false, or offload less.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const auto host = host_memory(s);
            if (!host) return;
            const std::int64_t pinned = s.priced->estimate().host_per_node.pinned;
            if (pinned > *host / 2)
              report("zero_optimization.offload_optimizer.pin_memory",
                     say("pins {} of {}", format_bytes(pinned), format_bytes(*host)),
                     "less than half of the host");
          },
  };
}

}  // namespace shardplan::lint_rules::host
