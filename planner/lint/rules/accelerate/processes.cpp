#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule processes() {
  return {
      .rule =
          {
              .id = "accelerate.processes"_rule,
              .severity = Severity::error,
              .title = "num_processes differs from the GPUs",
              .explanation = "The batch and the shards are computed for another number of ranks.",
              .source = "accelerate: commands/launch.py",
              .advice = "Set num_processes to the number of GPUs.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.accelerate == nullptr || s.cluster == nullptr || !s.accelerate->processes) return;
            const std::int64_t processes = *s.accelerate->processes, gpus = s.cluster->world();
            if (processes != gpus)
              report("num_processes",
                     say("{}, but {} has {} GPUs", processes, s.cluster->label, gpus),
                     say("{}", gpus));
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
