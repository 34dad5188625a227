#include "lint/rules/zero/family.h"
#include "load/ds_config/repairs.h"

namespace shardplan::lint_rules::zero {

LintRule mics_hierarchical() {
  return {
      .rule =
          {
              .id = "zero.mics-hierarchical"_rule,
              .severity = Severity::error,
              .title = "Hierarchical gathers of a shard group within a node",
              .explanation =
                  "mics_hierarchical_params_gather goes between nodes first, and asserts that a "
                  "shard group spans several whole ones.",
              .source = "deepspeed/runtime/zero/mics_utils.py create_mics_comm_groups",
              .advice = "Remove it, or shard over several nodes.",
              .repair = repair::remove_it,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (!shards_on_cluster(s)) return;
            const std::int64_t node = s.cluster->gpus_per_node;
            const std::int64_t shard = s.values.integer("zero_optimization.mics_shard_size");
            if (shard > 0 && s.values.flag(kHierarchical) &&
                (shard / node < 2 || shard % node != 0))
              report(kHierarchical,
                     say("a shard group of {} does not span whole nodes of {} GPUs", shard, node),
                     "false");
          },
  };
}

}  // namespace shardplan::lint_rules::zero
