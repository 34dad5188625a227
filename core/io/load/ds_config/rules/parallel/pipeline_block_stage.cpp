#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule pipeline_block_stage() {
  return {
      .rule =
          {
              .id = "ds.pipeline-block-stage"_rule,
              .severity = Severity::warning,
              .title = "A pipeline block with ZeRO stage 2 or 3",
              .explanation =
                  "The block is read only by PipelineModule, which works only with stages 0 and 1.",
              .source = kPipeline,
              .advice = "Use stage 0 or 1, or remove the block.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.stage() >= 2 && s.context.pipeline_parallel <= 1 &&
                s.values.given("pipeline") != nullptr)
              report("pipeline", kPipelineStages, "zero_optimization.stage 0 or 1");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
