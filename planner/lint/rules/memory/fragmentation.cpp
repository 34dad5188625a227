#include "base/units.h"
#include "lint/rules/memory/family.h"

namespace shardplan::lint_rules::memory {

PricedRule fragmentation() {
  return {
      .rule =
          {
              .id = "memory.fragmentation"_rule,
              .severity = Severity::warning,
              .title = "The allocator's fragments keep the job from fitting",
              .explanation =
                  "Blocks of many sizes leave holes between them that nothing fits into; they "
                  "take a tenth of the GPU or more, and the job may not fit.",
              .source = "docs/explanation/allocator.md; pytorch issue 35901",
              .advice = "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            if (s.job.estimate().verdict.gpu.fit == Fit::fits) return;  // they harm nobody
            const std::int64_t fragments = at_peak(s.job.estimate(), Category::fragmentation);
            if (fragments >= kGiB && at_least(fragments, s.job.price().gpu, 0.1))
              report("zero_optimization",
                     say("fragments of the allocator take {}", saved(fragments, s.job)),
                     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
          },
  };
}

}  // namespace shardplan::lint_rules::memory
