#include "load/ds_config/rules/batch/family.h"

namespace shardplan::config_rules::batch {

ConfigRule elastic_batch() {
  return {
      .rule =
          {
              .id = "ds.elastic-batch"_rule,
              .severity = Severity::error,
              .title = "Elasticity with explicit batch sizes",
              .explanation = "Elastic training chooses the batch and refuses to be told one.",
              .source = kElastic,
              .advice = "Remove the batch keys, or set elasticity.ignore_non_elastic_batch_info.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (is_elastic(s) && has_batch_key(s.values) &&
                !s.values.flag("elasticity.ignore_non_elastic_batch_info"))
              report("elasticity.enabled", "elasticity refuses explicit batch sizes",
                     "no batch keys, or elasticity.ignore_non_elastic_batch_info");
          },
  };
}

}  // namespace shardplan::config_rules::batch
