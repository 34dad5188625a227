#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

AccelerateRule no_distributed_type() {
  return {
      .rule =
          {
              .id = "accelerate.no-distributed-type"_rule,
              .severity = Severity::error,
              .title = "No distributed_type",
              .explanation = "accelerate raises an error without it.",
              .source = kConfig,
              .advice = "Set distributed_type: DEEPSPEED.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const AccelerateConfig& a, const Report& report) {
            if (a.distributed_type.empty())
              report("distributed_type", "not in the file, which accelerate refuses", "DEEPSPEED");
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
