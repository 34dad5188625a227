#include "load/ds_config/rules/batch/family.h"

namespace shardplan::config_rules::batch {

ConfigRule elastic_batch_ignored() {
  return {
      .rule =
          {
              .id = "ds.elastic-batch-ignored"_rule,
              .severity = Severity::warning,
              .title = "Elasticity ignores the file's batch sizes",
              .explanation =
                  "With ignore_non_elastic_batch_info the batch keys are overwritten at start-up.",
              .source = kElastic,
              .advice = "Remove the batch keys.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (is_elastic(s) && has_batch_key(s.values) &&
                s.values.flag("elasticity.ignore_non_elastic_batch_info"))
              report("elasticity.enabled",
                     "the batch sizes of the file are ignored, because elasticity chooses them");
          },
  };
}

}  // namespace shardplan::config_rules::batch
