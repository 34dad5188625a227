#include "lint/rules/machine/family.h"

namespace shardplan::lint_rules::machine {

LintRule gpu_no_bf16() {
  return {
      .rule =
          {
              .id = "gpu.no-bf16"_rule,
              .severity = Severity::warning,
              .title = "bf16 on GPUs without bf16 units",
              .explanation =
                  "GPUs before Ampere have fp16 tensor cores only; PyTorch emulates bf16 there, "
                  "several times slower.",
              .source = "data/hardware/gpus.json; torch.cuda.is_bf16_supported, which counts "
                        "emulation as "
                        "support",
              .advice = "Use fp16 with dynamic loss scaling.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.cluster == nullptr || !s.values.flag("bf16.enabled")) return;
            const Gpu& gpu = s.cluster->gpu;
            if (lacks(gpu, PeakRate::bf16))
              report("bf16.enabled", say("{} has no bf16 units", gpu.name), "fp16.enabled");
          },
  };
}

}  // namespace shardplan::lint_rules::machine
