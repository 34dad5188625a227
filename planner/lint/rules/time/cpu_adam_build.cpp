#include "lint/rules/time/family.h"

namespace shardplan::lint_rules::time {

LintRule cpu_adam_build() {
  return {
      .rule =
          {
              .id = "time.cpu-adam-build"_rule,
              .severity = Severity::note,
              .title = "The offloaded optimizer is compiled at start-up",
              .explanation =
                  "DeepSpeedCPUAdam is built just in time, with the machine's compiler and CUDA "
                  "toolkit; a mismatch of versions stops the job.",
              .source = "deepspeed/ops/op_builder/cpu_adam.py; issues 1077, 1846 of DeepSpeed",
              .advice =
                  "Run ds_report before the job, or install DeepSpeed with DS_BUILD_CPU_ADAM=1.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.values.stage() > 0 && offloads(s.values, kOffloadOptimizer))
              report(kOffloadOptimizer, "uses DeepSpeedCPUAdam, which is compiled at start-up");
          },
  };
}

}  // namespace shardplan::lint_rules::time
