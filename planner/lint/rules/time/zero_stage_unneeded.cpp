#include "base/format.h"
#include "lint/rules/time/family.h"

namespace shardplan::lint_rules::time {

PricedRule zero_stage_unneeded() {
  return {
      .rule =
          {
              .id = "zero.stage-unneeded"_rule,
              .severity = Severity::note,
              .title = "A lower stage fits and is faster",
              .explanation = "Stage 3 pays for every gather; stage 2 holds the parameters.",
              .source = kTime,
              .advice = "Use the lower stage.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            if (s.values.stage() != 3 || offload_block(s.values) != nullptr) return;
            const auto lower = s.job.with({set_key(kStage, 2)});
            const double now = s.job.price().seconds_per_token;
            if (!lower || !lower->price.fits || now == 0) return;
            constexpr double kWorthwhile = 0.05;
            const double faster = 1 - lower->price.seconds_per_token / now;
            if (faster >= kWorthwhile)
              report(kStage,
                     say("stage 2 needs {} of each GPU and saves {} of the step",
                         format_bytes(lower->price.gpu), percent(faster)),
                     "2");
          },
  };
}

}  // namespace shardplan::lint_rules::time
