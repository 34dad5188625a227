#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule nvme_path_missing() {
  return {
      .rule =
          {
              .id = "ds.nvme-path-missing"_rule,
              .severity = Severity::error,
              .title = "Offload to NVMe without a path",
              .explanation = "The swapper joins a folder to nvme_path and fails without one.",
              .source = "deepspeed/runtime/swap_tensor/partitioned_param_swapper.py",
              .advice = "Set nvme_path to a folder on a local NVMe device.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            for (const std::string block : {"offload_optimizer", "offload_param"}) {
              const std::string path = "zero_optimization." + block + ".nvme_path";
              if (s.values.stage() == 3 && device_of(s.values, block) == "nvme" &&
                  !s.values.maybe_text(path))
                report(path, "offload to nvme needs a path", "a folder on the NVMe device");
            }
          },
  };
}

}  // namespace shardplan::config_rules::zero
