#include "base/format.h"
#include "lint/rules/memory/family.h"

namespace shardplan::lint_rules::memory {

PricedRule fit_gpu_tight() {
  return {
      .rule =
          {
              .id = "fit.gpu-tight"_rule,
              .severity = Severity::warning,
              .title = "The job may not fit the GPUs",
              .explanation = "The lower bound fits, the upper bound does not.",
              .source = "docs/evidence/accuracy.md",
              .advice = "Make a little more room before a long run.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const Estimate& e = s.job.estimate();
            if (e.verdict.gpu.fit == Fit::tight)
              report("zero_optimization",
                     say("needs {} of each GPU, at most {}", format_bytes(e.device.point),
                         format_bytes(e.device.upper)),
                     say("at most {}", format_bytes(e.usable_bytes)));
          },
  };
}

}  // namespace shardplan::lint_rules::memory
