#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule loss_scale_range() {
  return {
      .rule =
          {
              .id = "ds.loss-scale-range"_rule,
              .severity = Severity::error,
              .title = "A dynamic loss scale that cannot change",
              .explanation =
                  "loss_scale_window and min_loss_scale must be positive under dynamic loss "
                  "scaling.",
              .source = "deepspeed/runtime/precision_config.py _validate_dynamic_loss_scale_params",
              .advice = "Use 1 or more, or a static loss_scale.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (!s.values.flag("fp16.enabled") || s.values.number("fp16.loss_scale") != 0) return;
            for (const char* key : {"fp16.loss_scale_window", "fp16.min_loss_scale"})
              if (s.values.integer(key) <= 0)
                report(key, say("found {} with dynamic loss scaling", s.values.integer(key)),
                       "an integer of at least 1");
          },
  };
}

}  // namespace shardplan::config_rules::precision
