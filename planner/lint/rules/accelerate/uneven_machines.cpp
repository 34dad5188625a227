#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule uneven_machines() {
  return {
      .rule =
          {
              .id = "accelerate.uneven-machines"_rule,
              .severity = Severity::error,
              .title = "num_machines does not divide num_processes",
              .explanation = "Every machine starts num_processes / num_machines.",
              .source = "accelerate: utils/launch.py",
              .advice = "Use a multiple of num_machines.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.accelerate == nullptr || !s.accelerate->processes) return;
            const std::int64_t processes = *s.accelerate->processes,
                               machines = s.accelerate->machines;
            if (machines > 1 && processes % machines != 0)
              report("num_processes", say("{} processes on {} machines", processes, machines),
                     say("a multiple of {}", machines));
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
