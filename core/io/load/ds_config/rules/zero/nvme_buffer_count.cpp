#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {
namespace {

constexpr std::int64_t kAdamTensors = 4;  // parameter, gradient, two moments

std::vector<Edit> four_buffers(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, kAdamTensors)};
}

}  // namespace

ConfigRule nvme_buffer_count() {
  return {
      .rule =
          {
              .id = "ds.nvme-buffer-count"_rule,
              .severity = Severity::warning,
              .title = "Too few NVMe buffers for Adam",
              .explanation =
                  "One sub-group's parameter, gradient and two moments are in flight together.",
              .source = "deepspeed/runtime/swap_tensor/partitioned_optimizer_swapper.py",
              .advice = "Use at least 4.",
              .repair = four_buffers,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const std::int64_t buffers = s.values.integer(kBufferCount);
            if (s.values.stage() == 3 && device_of(s.values, "offload_optimizer") == "nvme" &&
                buffers < kAdamTensors)
              report(kBufferCount,
                     say("{} buffers do not hold the {} tensors of Adam", buffers, kAdamTensors),
                     "at least 4");
          },
  };
}

}  // namespace shardplan::config_rules::zero
