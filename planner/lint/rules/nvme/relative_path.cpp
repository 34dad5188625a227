#include "lint/rules/nvme/family.h"

namespace shardplan::lint_rules::nvme {

LintRule relative_path() {
  return {
      .rule =
          {
              .id = "nvme.relative-path"_rule,
              .severity = Severity::warning,
              .title = "A relative nvme_path",
              .explanation =
                  "It starts at each process's working directory, which differs between nodes and "
                  "launchers.",
              .source = "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py",
              .advice = "Write an absolute path.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            for (const auto& [key, path] : nvme_paths(s.values))
              if (path[0] != '/') report(key, say("'{}' is relative", path), "an absolute path");
          },
  };
}

}  // namespace shardplan::lint_rules::nvme
