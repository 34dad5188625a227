#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/unread/family.h"

namespace shardplan::config_rules::unread {

ConfigRule aio_unread() {
  return {
      .rule =
          {
              .id = "ds.aio-unread"_rule,
              .severity = Severity::warning,
              .title = "An aio block without NVMe offload",
              .explanation = "Nothing is swapped, so its settings are never used by training.",
              .source = "deepspeed/runtime/swap_tensor/aio_config.py",
              .advice = "Remove it, or offload to nvme.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.given("aio") != nullptr && !swaps(s.values, "offload_optimizer") &&
                !swaps(s.values, "offload_param"))
              report("aio", "has no effect: nothing is swapped to NVMe");
          },
  };
}

}  // namespace shardplan::config_rules::unread
