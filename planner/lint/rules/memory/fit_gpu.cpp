#include "base/format.h"
#include "lint/rules/memory/family.h"

namespace shardplan::lint_rules::memory {

PricedRule fit_gpu() {
  return {
      .rule =
          {
              .id = "fit.gpu"_rule,
              .severity = Severity::error,
              .title = "The job does not fit the GPUs",
              .explanation = "The peak of one optimizer step is above what a process can allocate.",
              .source = kEstimate,
              .advice = "See what `shardplan fit` proposes; the keys' costs are listed below the "
                        "findings.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const Estimate& e = s.job.estimate();
            if (e.verdict.gpu.fit == Fit::does_not_fit)
              report("zero_optimization", say("needs {} of each GPU", format_bytes(e.device.point)),
                     say("at most {}", format_bytes(e.usable_bytes)));
          },
  };
}

}  // namespace shardplan::lint_rules::memory
