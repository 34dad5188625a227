#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule hpz_nvme() {
  return {
      .rule =
          {
              .id = "ds.hpz-nvme"_rule,
              .severity = Severity::error,
              .title = "hpZ with parameters on NVMe",
              .explanation =
                  "Secondary shards are allocated on the device that parameters are offloaded to, "
                  "and there is none of that name.",
              .source = "deepspeed/runtime/zero/partition_parameters.py _partition_param_sec",
              .advice = "Offload parameters to the host, or not at all.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (hpz_size(s.values) > 0 && device_of(s.values, "offload_param") == "nvme")
              report(
                  kHpz,
                  "secondary shards are made where parameters are offloaded to, and PyTorch makes "
                  "no tensor on NVMe",
                  "1, or offload_param.device cpu");
          },
  };
}

}  // namespace shardplan::config_rules::zero
