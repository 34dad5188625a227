#include "base/format.h"
#include "lint/rules/memory/family.h"

namespace shardplan::lint_rules::memory {

PricedRule logits() {
  return {
      .rule =
          {
              .id = "memory.logits"_rule,
              .severity = Severity::warning,
              .title = "Logits take a large part of the GPU",
              .explanation =
                  "The loss keeps fp32 logits of micro-batch x tokens x vocabulary, and their "
                  "gradient.",
              .source = "transformers: loss/loss_utils.py; trl issue 3678",
              .advice =
                  "Use a fused linear cross-entropy (Liger's, use_liger_kernel), or a smaller "
                  "micro-batch.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const Job& job = s.job.job();
            if (job.plan.loss != LossKind::cross_entropy || job.model.facts.vocabulary == 0) return;
            const auto fused = s.job.with_job(Json{{"loss", "fused_linear"}});
            const std::int64_t now = s.job.price().gpu;
            if (!fused || !at_least(now - fused->price.gpu, now, 0.1)) return;
            const Workload& w = job.plan.workload;
            report(
                "train_micro_batch_size_per_gpu",
                say("logits of {} tokens x {} words cost {}",
                    format_count(w.micro_batch * w.sequence_length),
                    format_count(job.model.facts.vocabulary), saved(now - fused->price.gpu, s.job)),
                "a fused linear cross-entropy");
          },
  };
}

}  // namespace shardplan::lint_rules::memory
