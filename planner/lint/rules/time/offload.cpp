#include <cmath>

#include "base/format.h"
#include "lint/rules/time/family.h"

namespace shardplan::lint_rules::time {

PricedRule offload() {
  return {
      .rule =
          {
              .id = "time.offload"_rule,
              .severity = Severity::warning,
              .title = "Offload takes most of the step",
              .explanation =
                  "Copies over PCIe and the update on the CPU are longer than forward and "
                  "backward.",
              .source = "docs/explanation/time.md; issues 6834, 1635 of DeepSpeed",
              .advice = "Accumulate more micro-batches per step, and give every rank its CPU "
                        "threads.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const char* block = offload_block(s.values);
            if (block == nullptr) return;
            const TimeEstimate& t = s.job.estimate().time;
            const double host = share(t.exposed_copy_seconds + t.optimizer_seconds, t.step_seconds);
            constexpr double kMost = 0.5;
            if (host < kMost) return;
            const auto without = without_offload(s.job);
            if (without && without->price.fits) return;  // it is not needed, which says more
            const std::string whole = format_seconds(t.step_seconds);
            report(block,
                   t.error ? say("{} of a step of {} goes to copies and the CPU's update; such "
                                 "steps were off by {} at most",
                                 percent(host), whole, percent(std::abs(t.error->largest)))
                           : say("{} of a step of {} goes to copies and the CPU's update",
                                 percent(host), whole),
                   "more accumulation, or less offload");
          },
  };
}

}  // namespace shardplan::lint_rules::time
