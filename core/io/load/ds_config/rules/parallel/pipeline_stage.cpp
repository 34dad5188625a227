#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule pipeline_stage() {
  return {
      .rule =
          {
              .id = "ds.pipeline-stage"_rule,
              .severity = Severity::error,
              .title = "A pipeline with ZeRO stage 2 or 3",
              .explanation =
                  "The pipeline engine keeps gradients over a whole schedule and asserts a stage "
                  "below 2.",
              .source = kPipeline,
              .advice = "Use stage 0 or 1.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.stage() >= 2 && s.context.pipeline_parallel > 1)
              report("zero_optimization.stage", say("{}: {}", s.values.stage(), kPipelineStages),
                     "0 or 1");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
