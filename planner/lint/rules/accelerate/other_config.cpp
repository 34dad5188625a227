#include <filesystem>

#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule other_config() {
  return {
      .rule =
          {
              .id = "accelerate.other-config"_rule,
              .severity = Severity::warning,
              .title = "accelerate names another ds_config",
              .explanation = "The job reads the file that deepspeed_config_file names.",
              .source = kPlugin,
              .advice = "Lint the file that the job will use.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const AccelerateConfig* a = deepspeed_launch(s);
            if (a == nullptr || !a->deepspeed_file) return;
            const auto name_of_file = [](const std::string& path) {
              return std::filesystem::path(path).filename();
            };
            if (name_of_file(*a->deepspeed_file) != name_of_file(s.file))
              report("deepspeed_config.deepspeed_config_file",
                     say("names {}, and {} is linted", *a->deepspeed_file, s.file));
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
