#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {
namespace {

std::vector<Edit> to_cpu(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, "cpu")};
}

}  // namespace

ConfigRule nvme_below_stage_3() {
  return {
      .rule =
          {
              .id = "ds.nvme-below-stage-3"_rule,
              .severity = Severity::warning,
              .title = "The optimizer on NVMe below stage 3",
              .explanation = "Stages 1 and 2 keep the states in host memory: the NVMe stays empty "
                             "and the host "
                             "fills up.",
              .source = "deepspeed/runtime/zero/stage_1_and_2.py",
              .advice = "Use stage 3, or plan for the host memory.",
              .repair = to_cpu,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const int stage = s.values.stage();
            if (device_of(s.values, "offload_optimizer") == "nvme" && (stage == 1 || stage == 2))
              report(kOptimizerDevice,
                     say("stage {} keeps the states in host memory, not on NVMe", stage),
                     "cpu, or stage 3");
          },
  };
}

}  // namespace shardplan::config_rules::zero
