#include "base/format.h"
#include "lint/rules/host/family.h"

namespace shardplan::lint_rules::host {

LintRule fit_nvme() {
  return {
      .rule =
          {
              .id = "fit.nvme"_rule,
              .severity = Severity::error,
              .title = "Offloaded states do not fit the NVMe",
              .explanation = "Writes fail when the device is full, and reads return too few bytes.",
              .source = "docs/explanation/memory.md; issue 3376 of DeepSpeed",
              .advice = "Offload less, or use more nodes.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.priced == nullptr) return;
            const auto& nvme = s.priced->estimate().verdict.nvme;
            if (nvme.fit == Fit::does_not_fit && nvme.available.value_or(0) > 0)
              report("zero_optimization.offload_optimizer.device",
                     say("needs {} of {}", format_bytes(nvme.needed), Said("each node's NVMe")),
                     say("at most {}", format_bytes(nvme.available.value_or(0))));
          },
  };
}

}  // namespace shardplan::lint_rules::host
