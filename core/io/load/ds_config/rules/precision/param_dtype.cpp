#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule param_dtype() {
  return {
      .rule =
          {
              .id = "ds.param-dtype"_rule,
              .severity = Severity::error,
              .title = "param_dtype contradicts the engine's type",
              .explanation = "data_types.param_dtype must be what fp16 and bf16 say.",
              .source = "deepspeed/runtime/engine.py _assert_valid_mixed_precision_config",
              .advice = "Remove it, or write the engine's type.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const DType engine = engine_type(s.values);
            const auto parameters = s.values.maybe_text("data_types.param_dtype");
            if (parameters && parse_dtype(*parameters) != engine)
              report("data_types.param_dtype",
                     say("{} contradicts the engine type {}", *parameters, name_of(engine)),
                     std::string(name_of(engine)));
          },
  };
}

}  // namespace shardplan::config_rules::precision
