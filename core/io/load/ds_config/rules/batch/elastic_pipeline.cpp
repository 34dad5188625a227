#include "load/ds_config/rules/batch/family.h"

namespace shardplan::config_rules::batch {

ConfigRule elastic_pipeline() {
  return {
      .rule =
          {
              .id = "ds.elastic-pipeline"_rule,
              .severity = Severity::error,
              .title = "Elasticity with pipeline parallelism",
              .explanation = "The pipeline engine asserts that elasticity is off.",
              .source = "deepspeed/runtime/pipe/engine.py",
              .advice = "Switch one of the two off.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (is_elastic(s) && s.context.pipeline_parallel > 1)
              report("elasticity.enabled", "elasticity does not work with pipeline parallelism");
          },
  };
}

}  // namespace shardplan::config_rules::batch
