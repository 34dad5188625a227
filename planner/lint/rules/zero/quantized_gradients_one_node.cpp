#include "lint/rules/zero/family.h"
#include "load/ds_config/repairs.h"

namespace shardplan::lint_rules::zero {

LintRule quantized_gradients_one_node() {
  return {
      .rule =
          {
              .id = "zero.quantized-gradients-one-node"_rule,
              .severity = Severity::warning,
              .title = "Quantized gradients within one node",
              .explanation =
                  "The quantized reduction runs between nodes; on one node gradients are sent "
                  "in full precision.",
              .source = "deepspeed/runtime/comm/coalesced_collectives.py all_to_all_quant_reduce",
              .advice = "Remove it on a single node.",
              .repair = repair::remove_it,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (shards_on_cluster(s) && s.cluster->nodes == 1 && s.values.flag(kQuantized) &&
                s.values.flag("zero_optimization.reduce_scatter"))
              report(kQuantized, "has no effect on a single node");
          },
  };
}

}  // namespace shardplan::lint_rules::zero
