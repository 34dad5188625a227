#include "lint/rules/zero/family.h"

namespace shardplan::lint_rules::zero {

LintRule hpz_across_nodes() {
  return {
      .rule =
          {
              .id = "zero.hpz-across-nodes"_rule,
              .severity = Severity::warning,
              .title = "Secondary shards that cross a node",
              .explanation =
                  "hpZ keeps a second copy of the shards so that gathers stay within a node; "
                  "groups larger than a node pay for the copy and use the network all the "
                  "same.",
              .source = "docs/_tutorials/zeropp.md",
              .advice = "Use the number of GPUs per node.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (!shards_on_cluster(s)) return;
            const std::int64_t node = s.cluster->gpus_per_node;
            const std::int64_t secondary = s.values.integer(kHpz);
            if (secondary > node && s.cluster->world() % secondary == 0)
              report(kHpz, say("groups of {} GPUs do not fit a node of {}", secondary, node),
                     say("{}", node));
          },
  };
}

}  // namespace shardplan::lint_rules::zero
