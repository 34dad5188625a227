#include "load/ds_config/rules/batch/family.h"

namespace shardplan::config_rules::batch {

ConfigRule sequence_parallel_ranks() {
  return {
      .rule =
          {
              .id = "ds.sequence-parallel-ranks"_rule,
              .severity = Severity::error,
              .title = "sequence_parallel_size does not divide the ranks",
              .explanation = "The ranks of the batch are world / sequence_parallel_size.",
              .source = "deepspeed/runtime/config.py DeepSpeedConfig.__init__",
              .advice = "Choose a divisor of the ranks.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (is_elastic(s) || !s.context.world_size) return;
            const BatchTriangle given = given_batch(s.values, s.context);
            const auto sequence = s.values.maybe_integer("sequence_parallel_size").value_or(1);
            if ((given.train_batch || given.micro_batch) && *s.context.world_size % sequence != 0)
              report("sequence_parallel_size",
                     say("{} does not divide the {} ranks", sequence, *s.context.world_size),
                     say("a divisor of {}", *s.context.world_size));
          },
  };
}

}  // namespace shardplan::config_rules::batch
