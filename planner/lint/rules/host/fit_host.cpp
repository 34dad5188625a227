#include "base/format.h"
#include "lint/rules/host/family.h"

namespace shardplan::lint_rules::host {

LintRule fit_host() {
  return {
      .rule =
          {
              .id = "fit.host"_rule,
              .severity = Severity::error,
              .title = "Offloaded states do not fit the host",
              .explanation = "The kernel kills a rank with signal 9 and no message of DeepSpeed's.",
              .source = "docs/explanation/memory.md; issues 4239, 4571 of DeepSpeed",
              .advice = "Offload less, use more nodes, or put the states on NVMe at stage 3.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.priced == nullptr) return;
            const auto& host = s.priced->estimate().verdict.host;
            if (host.fit == Fit::does_not_fit)
              report("zero_optimization.offload_optimizer",
                     say("needs {} of {}", format_bytes(host.needed), Said("each host's memory")),
                     say("well below {}", format_bytes(host.available.value_or(0))));
          },
  };
}

}  // namespace shardplan::lint_rules::host
