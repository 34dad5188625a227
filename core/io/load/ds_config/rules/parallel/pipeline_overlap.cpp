#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule pipeline_overlap() {
  return {
      .rule =
          {
              .id = "ds.pipeline-overlap"_rule,
              .severity = Severity::warning,
              .title = "overlap_comm under a pipeline",
              .explanation =
                  "The pipeline engine reduces gradients after its schedule; nothing overlaps.",
              .source = kPipeline,
              .advice = "Remove it.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "zero_optimization.overlap_comm";
            if (s.context.pipeline_parallel > 1 && s.values.given(kKey) != nullptr &&
                s.values.flag(kKey))
              report(kKey, "has no effect: the pipeline engine reduces after its schedule");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
