#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule auto_cast_without_fp16() {
  return {
      .rule =
          {
              .id = "ds.auto-cast-without-fp16"_rule,
              .severity = Severity::warning,
              .title = "fp16.auto_cast in an engine that does not run in fp16",
              .explanation =
                  "The engine looks at this key whether or not fp16 is on: floating-point inputs "
                  "are cast to fp16 before the forward pass, and the first product with weights of "
                  "another type stops the run. Inputs that are token numbers are left alone.",
              .source = "deepspeed/runtime/engine.py fp16_auto_cast, _cast_inputs_half",
              .advice = "Remove fp16.auto_cast, or run in fp16.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.flag("fp16.auto_cast") && !s.values.flag("fp16.enabled"))
              report("fp16.auto_cast",
                     "inputs are cast to fp16, but the engine does not run in fp16",
                     "false, or fp16.enabled");
          },
  };
}

}  // namespace shardplan::config_rules::precision
