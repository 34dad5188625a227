#include "base/format.h"
#include "lint/rules/memory/family.h"

namespace shardplan::lint_rules::memory {

PricedRule fp32() {
  return {
      .rule =
          {
              .id = "memory.fp32"_rule,
              .severity = Severity::warning,
              .title = "fp32 on GPUs with bf16 units",
              .explanation = "Parameters, gradients and activations take twice the bytes, and the "
                             "tensor cores' "
                             "rate is not used.",
              .source = "deepspeed/runtime/engine.py get_data_types; accelerate PR 2674",
              .advice = "Enable bf16.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const Plan& plan = s.job.job().plan;
            if (plan.precision.compute != DType::f32 || !plan.cluster.gpu.peak[PeakRate::bf16] ||
                s.values.flag("amp.enabled"))
              return;
            if (const auto half = s.job.with({set_key("bf16.enabled", true)}))
              report("bf16.enabled",
                     say("fp32 needs {} of each GPU, bf16 {}", format_bytes(s.job.price().gpu),
                         format_bytes(half->price.gpu)),
                     "true");
          },
  };
}

}  // namespace shardplan::lint_rules::memory
