#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule contiguous_without_partition() {
  return {
      .rule =
          {
              .id = "ds.contiguous-without-partition"_rule,
              .severity = Severity::error,
              .title = "Contiguous checkpoints that are not partitioned",
              .explanation = "contiguous_memory_optimization asserts partition_activations.",
              .source = kCheckpointing,
              .advice = "Set activation_checkpointing.partition_activations.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.flag(kContiguous) &&
                !s.values.flag("activation_checkpointing.partition_activations"))
              report(kContiguous, "works only with partitioned activations",
                     "activation_checkpointing.partition_activations true");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
