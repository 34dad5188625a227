#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule autotp_stage_3() {
  return {
      .rule =
          {
              .id = "ds.autotp-stage-3"_rule,
              .severity = Severity::error,
              .title = "Tensor parallelism at ZeRO stage 3",
              .explanation = "Before 0.19.4 DeepSpeed asserts stage 2 or less with AutoTP.",
              .source = kTensor,
              .advice = "Use stage 0, 1 or 2, or DeepSpeed 0.19.4.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            // The first version without the assertion in engine.py that stage 3 excludes AutoTP.
            constexpr DeepSpeedVersion kAutoTpWithStage3{0, 19, 4};
            if (tensor_ranks(s.values) > 1 && s.values.stage() == 3 &&
                s.values.version() < kAutoTpWithStage3)
              report("tensor_parallel.autotp_size",
                     "tensor parallelism was not validated with ZeRO stage 3 and is refused",
                     "zero_optimization.stage 0, 1 or 2");
          },
  };
}

}  // namespace shardplan::config_rules::parallel
