#include "lint/rules/time/family.h"

namespace shardplan::lint_rules::time {

PricedRule stage_3_traffic() {
  return {
      .rule =
          {
              .id = "time.stage-3-traffic"_rule,
              .severity = Severity::warning,
              .title = "Stage 3 waits for its gathers",
              .explanation =
                  "Parameters are sent twice per micro-batch; on PCIe or Ethernet that takes "
                  "longer than computing with them.",
              .source = "docs/explanation/time.md; issue 3349 of DeepSpeed",
              .advice = "Use stage 2 if it fits, a larger micro-batch, or hpZ "
                        "(zero_hpz_partition_size).",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const double waits = waiting_share(s.job);
            if (waits >= kLongWait && !has_slow_network(s.job.job().plan.cluster) &&
                s.values.stage() == 3)
              report(kStage, say("{} of the step waits for gathers and reductions", percent(waits)),
                     "a lower stage, or a larger micro-batch");
          },
  };
}

}  // namespace shardplan::lint_rules::time
