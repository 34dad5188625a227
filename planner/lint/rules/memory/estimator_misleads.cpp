#include "base/format.h"
#include "lint/rules/memory/family.h"
#include "questions/peer_rules.h"

namespace shardplan::lint_rules::memory {

PricedRule estimator_misleads() {
  return {
      .rule =
          {
              .id = "memory.estimator-misleads"_rule,
              .severity = Severity::warning,
              .title = "DeepSpeed's own estimator says that this fits",
              .explanation = "estimate_zero2/3_model_states_mem_needs counts model states only: no "
                             "activations, "
                             "logits, buckets, gathered layers, context or fragmentation.",
              .source =
                  "deepspeed/runtime/zero/stage_1_and_2.py, stage3.py; issues 4093, 4527, 2302 of "
                  "DeepSpeed",
              .advice = "Plan with the peak, not with the states.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const Estimate& e = s.job.estimate();
            if (e.verdict.headroom_bytes >= 0) return;
            const Job& job = s.job.job();
            const auto states = job.plan.framework.deepspeed.zero.stage == 3
                                    ? deepspeed_zero3_estimate(job.model, job.plan)
                                    : deepspeed_zero2_estimate(job.model, job.plan);
            if (states && *states <= e.usable_bytes)
              report("zero_optimization.stage",
                     say("DeepSpeed's estimator says {}, the states alone; the peak is {}",
                         format_bytes(*states), format_bytes(e.device.point)));
          },
  };
}

}  // namespace shardplan::lint_rules::memory
