#include "lint/rules/time/family.h"

namespace shardplan::lint_rules::time {

PricedRule launch_blocking() {
  return {
      .rule =
          {
              .id = "time.launch-blocking"_rule,
              .severity = Severity::warning,
              .title = "Every launch waits for its kernel",
              .explanation = "CUDA_LAUNCH_BLOCKING=1 is for debugging: host and GPU take turns, "
                             "and no exchange "
                             "runs beside computation.",
              .source = "docs/explanation/time.md; CUDA's programming guide, environment variables",
              .advice = "Unset CUDA_LAUNCH_BLOCKING once the fault is found.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            if (!s.job.job().plan.launch_blocking) return;
            const auto without = s.job.with_job({{"launch_blocking", false}});
            if (!without || without->price.seconds_per_token == 0) return;
            const double slower =
                s.job.price().seconds_per_token / without->price.seconds_per_token - 1;
            report("", say("CUDA_LAUNCH_BLOCKING=1 makes the step {} longer", percent(slower)),
                   "launch_blocking false");
          },
  };
}

}  // namespace shardplan::lint_rules::time
