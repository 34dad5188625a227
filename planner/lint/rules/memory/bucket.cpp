#include "base/checked.h"
#include "base/format.h"
#include "lint/rules/memory/family.h"

namespace shardplan::lint_rules::memory {

PricedRule bucket() {
  return {
      .rule =
          {
              .id = "memory.bucket"_rule,
              .severity = Severity::warning,
              .title = "Buckets as large as the model",
              .explanation =
                  "reduce_bucket_size holds more elements than the model trains: all gradients "
                  "at once, and with overlap_comm a second buffer.",
              .source = "deepspeed/runtime/zero/stage_1_and_2.py; issue 4875 of DeepSpeed",
              .advice = "Use hidden_size squared, as HF Trainer's \"auto\" does.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            constexpr const char* kBucket = "zero_optimization.reduce_bucket_size";
            const Job& job = s.job.job();
            const std::int64_t hidden = job.model.facts.hidden;
            if (s.values.stage() == 0 || hidden == 0) return;
            const Parallel& divided = job.plan.parallel;
            const std::int64_t trained =
                job.model.trainable_count() / (divided.tensor * divided.pipeline);
            const std::int64_t bucket = s.values.integer(kBucket);
            if (bucket < trained) return;
            const auto smaller = s.job.with({set_key(kBucket, checked_mul(hidden, hidden))});
            const std::int64_t now = s.job.price().gpu;
            if (!smaller || !at_least(now - smaller->price.gpu, now, 0.02)) return;
            report(kBucket,
                   say("{} elements, and {} are trained per rank: costs {}", format_count(bucket),
                       format_count(trained), saved(now - smaller->price.gpu, s.job)),
                   say("{}", hidden * hidden));
          },
  };
}

}  // namespace shardplan::lint_rules::memory
