#include "load/ds_config/rules/unread/family.h"

namespace shardplan::config_rules::unread {

ConfigRule swap_key_unread() {
  return {
      .rule =
          {
              .id = "ds.swap-key-unread"_rule,
              .severity = Severity::note,
              .title = "A key that only NVMe offload reads",
              .explanation = "The block offloads to host memory; buffers and paths of the NVMe "
                             "swapper are not "
                             "used.",
              .source = "deepspeed/runtime/swap_tensor",
              .advice = "Remove it, or offload to nvme.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.stage() != 3) return;
            const auto unused = [&](const std::string& name,
                                    std::initializer_list<const char*> keys) {
              const std::string block = "zero_optimization." + name;
              if (swaps(s.values, name) || switched_off(*ds_schema().find(block), s.values)) return;
              for (const char* key : keys)
                if (const std::string path = block + "." + key; s.values.given(path) != nullptr)
                  report(path, "has no effect: this is read only with the device nvme");
            };
            unused("offload_optimizer",
                   {"nvme_path", "buffer_count", "pipeline_read", "pipeline_write", "fast_init"});
            unused("offload_param", {"nvme_path", "buffer_count", "buffer_size", "max_in_cpu"});
          },
  };
}

}  // namespace shardplan::config_rules::unread
