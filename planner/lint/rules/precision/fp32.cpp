#include "lint/rules/precision/family.h"

namespace shardplan::lint_rules::precision {

LintRule fp32() {
  return {
      .rule =
          {
              .id = "precision.fp32"_rule,
              .severity = Severity::note,
              .title = "Everything runs in fp32",
              .explanation =
                  "Neither fp16, bf16, amp nor torch_autocast is on: parameters, gradients and "
                  "activations take four bytes per element, and tensor cores stay idle. "
                  "Programs that load a bf16 checkpoint are often surprised by this.",
              .source = "deepspeed/runtime/engine.py get_data_types",
              .advice = "Enable bf16 if the GPU has it.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            for (const char* mode :
                 {"fp16.enabled", "bf16.enabled", "amp.enabled", "torch_autocast.enabled"})
              if (s.values.flag(mode)) return;
            report("bf16.enabled", "no mixed-precision block is on: the engine runs in fp32");
          },
  };
}

}  // namespace shardplan::lint_rules::precision
