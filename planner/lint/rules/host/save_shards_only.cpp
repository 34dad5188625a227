#include "lint/rules/host/family.h"

namespace shardplan::lint_rules::host {

LintRule save_shards_only() {
  return {
      .rule =
          {
              .id = "save.shards-only"_rule,
              .severity = Severity::note,
              .title = "Saving at stage 3 writes shards",
              .explanation =
                  "Without stage3_gather_16bit_weights_on_model_save no 16-bit model is written: "
                  "save_16bit_model does nothing, and the weights are made from the shards "
                  "afterwards.",
              .source = "deepspeed/runtime/engine.py save_16bit_model",
              .advice = "Run zero_to_fp32.py, or gather on save.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.values.stage() == 3 && !s.values.flag(kGather))
              report(kGather, "is off: checkpoints hold shards");
          },
  };
}

}  // namespace shardplan::lint_rules::host
