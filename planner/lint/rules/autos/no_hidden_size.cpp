#include "lint/rules/autos/family.h"

namespace shardplan::lint_rules::autos {

LintRule no_hidden_size() {
  return {
      .rule =
          {
              .id = "auto.no-hidden-size"_rule,
              .severity = Severity::error,
              .title = "\"auto\" buckets for a model without hidden_size",
              .explanation =
                  "Bucket sizes are computed from the model's hidden_size; without one the trainer "
                  "raises an error.",
              .source = kTrainer,
              .advice = "Write numbers for the three bucket keys.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.model == nullptr || s.model->facts.hidden > 0 ||
                s.context.auto_resolver == AutoResolver::none)
              return;
            for (const char* path : {"zero_optimization.reduce_bucket_size",
                                     "zero_optimization.stage3_prefetch_bucket_size",
                                     "zero_optimization.stage3_param_persistence_threshold"}) {
              const Json* value = value_at(s.document, path);
              if (value != nullptr && value->is_string() && *value == "auto")
                report(path,
                       "\"auto\" is computed from hidden_size, which this model does not have",
                       "a number of elements");
            }
          },
  };
}

}  // namespace shardplan::lint_rules::autos
