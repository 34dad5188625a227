#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule quantized_weights_autocast() {
  return {
      .rule =
          {
              .id = "ds.quantized-weights-autocast"_rule,
              .severity = Severity::error,
              .title = "Quantized weights under torch_autocast",
              .explanation = "The quantizer wants 16-bit parameters.",
              .source = "deepspeed/runtime/engine.py",
              .advice = "Choose one of the two.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.flag("torch_autocast.enabled") &&
                s.values.flag("zero_optimization.zero_quantized_weights"))
              report("zero_optimization.zero_quantized_weights",
                     "quantized weights do not work with torch_autocast", "one of the two");
          },
  };
}

}  // namespace shardplan::config_rules::precision
