#include <filesystem>

#include "lint/rules/trainer/family.h"

namespace shardplan::lint_rules::trainer {

LintRule other_config() {
  return {
      .rule =
          {
              .id = "hf.other-config"_rule,
              .severity = Severity::warning,
              .title = "The arguments name another ds_config",
              .explanation = "The Trainer reads the file that its own argument names.",
              .source = "transformers: training_args.py",
              .advice = "Pass the file that the job will use.",
              .file = RuleFile::arguments,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.arguments == nullptr || !s.arguments->deepspeed) return;
            const std::string& named = *s.arguments->deepspeed;
            const auto name_of_file = [](const std::string& path) {
              return std::filesystem::path(path).filename();
            };
            if (name_of_file(named) != name_of_file(s.file))
              report("deepspeed", say("names {}, and {} is linted", named, s.file));
          },
  };
}

}  // namespace shardplan::lint_rules::trainer
