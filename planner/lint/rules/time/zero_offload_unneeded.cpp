#include "base/format.h"
#include "lint/rules/time/family.h"

namespace shardplan::lint_rules::time {

PricedRule zero_offload_unneeded() {
  return {
      .rule =
          {
              .id = "zero.offload-unneeded"_rule,
              .severity = Severity::warning,
              .title = "Offload that the job does not need",
              .explanation =
                  "The states fit the GPUs, bound included, and the step would be faster there.",
              .source = kTime,
              .advice = "Remove the offload blocks.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const char* block = offload_block(s.values);
            if (block == nullptr) return;
            const auto without = without_offload(s.job);
            if (without && without->price.fits)
              report(block,
                     say("without offload the job needs {} of each GPU and takes {} of the time",
                         format_bytes(without->price.gpu),
                         percent(share(without->price.seconds_per_token,
                                       s.job.price().seconds_per_token))),
                     "no offload");
          },
  };
}

}  // namespace shardplan::lint_rules::time
