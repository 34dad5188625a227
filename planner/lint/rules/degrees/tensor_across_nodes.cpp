#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule tensor_across_nodes() {
  return {
      .rule =
          {
              .id = "parallel.tensor-across-nodes"_rule,
              .severity = Severity::warning,
              .title = "Tensor parallelism across nodes",
              .explanation = "Every layer waits for an all-reduce in both passes, which nothing "
                             "hides; between "
                             "nodes it runs at a fraction of NVLink's rate.",
              .source = "Narayanan et al. 2021, section 3.2, takeaway 1 (arxiv.org/abs/2104.04473)",
              .advice = "Keep the degree within a node, and use ZeRO or a pipeline between nodes.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const std::int64_t degree = tensor_degree(s);
            if (degree <= 1 || s.cluster == nullptr || s.cluster->nodes < 2) return;
            const std::int64_t node = s.cluster->gpus_per_node;
            if (node % degree != 0)
              report(kTensorSize, say("groups of {} ranks span nodes of {} GPUs", degree, node),
                     divisors(node));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
