#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule mics_offload() {
  return {
      .rule =
          {
              .id = "ds.mics-offload"_rule,
              .severity = Severity::error,
              .title = "MiCS replicas with optimizer offload",
              .explanation = "The replicas' all-reduce runs on GPU shards only.",
              .source = "deepspeed/runtime/zero/mics.py",
              .advice = "Do not offload, or shard over all ranks.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const std::int64_t replicas = mics_replicas(s);
            if (replicas > 1 && device_of(s.values, "offload_optimizer") != "none")
              report(kMics,
                     say("MiCS with {} replicas does not work with optimizer offload", replicas),
                     "no offload_optimizer, or one shard group over all ranks");
          },
  };
}

}  // namespace shardplan::config_rules::zero
