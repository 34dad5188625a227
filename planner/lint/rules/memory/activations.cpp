#include "base/format.h"
#include "lint/rules/memory/family.h"

namespace shardplan::lint_rules::memory {

PricedRule activations() {
  return {
      .rule =
          {
              .id = "memory.activations"_rule,
              .severity = Severity::warning,
              .title = "Activations fill the GPU and are not checkpointed",
              .explanation =
                  "Every block keeps what its backward pass needs; checkpointing keeps a block's "
                  "input only.",
              .source = "docs/explanation/memory.md",
              .advice = "Checkpoint activations (gradient_checkpointing in HF's arguments).",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            if (s.job.price().fits || s.job.job().plan.checkpointing != Checkpointing::none) return;
            const std::int64_t kept = at_peak(s.job.estimate(), Category::activations);
            if (!at_least(kept, s.job.price().gpu, 0.25)) return;
            if (const auto full = s.job.with_job(Json{{"checkpointing", "full"}}))
              report("train_micro_batch_size_per_gpu",
                     say("without checkpointing activations take {}; with it the peak is {}",
                         format_bytes(kept), format_bytes(full->price.gpu)),
                     "gradient checkpointing");
          },
  };
}

}  // namespace shardplan::lint_rules::memory
