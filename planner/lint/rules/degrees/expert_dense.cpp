#include "lint/rules/degrees/family.h"
#include "parallel/degrees.h"

namespace shardplan::lint_rules::degrees {

LintRule expert_dense() {
  return {
      .rule =
          {
              .id = "parallel.expert-dense"_rule,
              .severity = Severity::warning,
              .title = "Expert parallelism of a model without experts",
              .explanation =
                  "AutoEP looks for layers with a router and experts, finds none and changes "
                  "nothing.",
              .source = "deepspeed/module_inject/auto_ep.py",
              .advice = "Remove the expert_parallel block.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.model != nullptr && s.values.flag("expert_parallel.enabled") &&
                expert_count(*s.model) == 0)
              report("expert_parallel", say("{} has no experts", s.model->facts.name),
                     "no such block");
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
