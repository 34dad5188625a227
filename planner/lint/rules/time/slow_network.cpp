#include "base/units.h"
#include "lint/rules/time/family.h"

namespace shardplan::lint_rules::time {

PricedRule slow_network() {
  return {
      .rule =
          {
              .id = "time.slow-network"_rule,
              .severity = Severity::warning,
              .title = "The network between nodes is slower than a step needs",
              .explanation =
                  "Gradients and parameters wait for it. Sockets instead of InfiniBand or RoCE "
                  "are the usual reason.",
              .source = "docs/explanation/time.md; nccl issue 766",
              .advice = "Check NCCL_DEBUG=INFO for NET/IB; accumulate more.",
          },
      .check =
          [](const PricedSubject& s, const Report& report) {
            const double waits = waiting_share(s.job);
            const Cluster& cluster = s.job.job().plan.cluster;
            if (waits >= kLongWait && has_slow_network(cluster))
              report("zero_optimization",
                     say("{} of the step waits for a network of {:.1f} GB/s per GPU",
                         percent(waits), cluster.inter_node_bandwidth / kGiga),
                     "InfiniBand or RoCE");
          },
  };
}

}  // namespace shardplan::lint_rules::time
