#include "lint/rules/nvme/family.h"

namespace shardplan::lint_rules::nvme {

LintRule no_device() {
  return {
      .rule =
          {
              .id = "nvme.no-device"_rule,
              .severity = Severity::error,
              .title = "Offload to NVMe on a machine without one",
              .explanation = "The machine of --gpus is listed without local NVMe.",
              .source = "data/hardware/instances.json",
              .advice = "Offload to cpu, or choose another machine.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.cluster == nullptr || !s.cluster->nvme || s.cluster->nvme->capacity.count() != 0)
              return;
            for (const std::string block : {kOffloadOptimizer, kOffloadParam})
              if (on_nvme(s.values, block))
                report(block + ".device", say("{} has no local NVMe", s.cluster->label), "cpu");
          },
  };
}

}  // namespace shardplan::lint_rules::nvme
