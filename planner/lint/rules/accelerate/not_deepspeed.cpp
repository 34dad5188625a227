#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule not_deepspeed() {
  return {
      .rule =
          {
              .id = "accelerate.not-deepspeed"_rule,
              .severity = Severity::warning,
              .title = "distributed_type is not DEEPSPEED",
              .explanation = "accelerate launch then starts without DeepSpeed, and the ds_config "
                             "is never read.",
              .source = "accelerate: commands/launch.py launch_command",
              .advice = "Set distributed_type: DEEPSPEED.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.accelerate == nullptr || deepspeed_launch(s) != nullptr) return;
            const AccelerateConfig& a = *s.accelerate;
            if (a.distributed_type != "FSDP" || a.document.contains("deepspeed_config"))
              report("distributed_type", say("{} starts without DeepSpeed", a.distributed_type),
                     "DEEPSPEED");
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
