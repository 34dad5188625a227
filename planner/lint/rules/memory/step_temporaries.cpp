#include "lint/rules/memory/family.h"
#include "load/ds_config/repairs.h"

namespace shardplan::lint_rules::memory {

PricedRule step_temporaries() {
  return {
      .rule =
          {
              .id = "memory.step-temporaries"_rule,
              .severity = Severity::warning,
              .title = "The optimizer step allocates a copy of its states",
              .explanation =
                  "torch's Adam in its foreach form makes lists of temporaries as large as what it "
                  "updates; the first step is the peak.",
              .source = "torch/optim/adam.py _multi_tensor_adam; pytorch issue 97712",
              .advice = "Remove optimizer.params.torch_adam: FusedAdam needs none.",
              .repair = repair::remove_it,
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            constexpr const char* kTorchAdam = "optimizer.params.torch_adam";
            if (!s.values.flag(kTorchAdam)) return;
            const auto fused = s.job.with({remove_key(kTorchAdam)});
            const std::int64_t now = s.job.price().gpu;
            if (fused && at_least(now - fused->price.gpu, now, 0.02))
              report(kTorchAdam, say("costs {}", saved(now - fused->price.gpu, s.job)),
                     "FusedAdam");
          },
  };
}

}  // namespace shardplan::lint_rules::memory
