#include "lint/rules/nvme/family.h"

namespace shardplan::lint_rules::nvme {

LintRule volatile_path() {
  return {
      .rule =
          {
              .id = "nvme.volatile-path"_rule,
              .severity = Severity::warning,
              .title = "An nvme_path that is usually memory",
              .explanation =
                  "/dev/shm, /run and often /tmp are backed by host memory: what is offloaded to "
                  "them fills the host, and O_DIRECT may fail.",
              .source = "tmpfs(5)",
              .advice = "Use a folder on a local NVMe file system.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            for (const auto& [key, path] : nvme_paths(s.values))
              for (const std::string root : {"/dev/shm", "/run", "/tmp"})
                if (path == root || path.starts_with(root + "/"))
                  report(key, say("{} is usually host memory", root),
                         "a folder on a local NVMe device");
          },
  };
}

}  // namespace shardplan::lint_rules::nvme
