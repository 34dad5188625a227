#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {
namespace {

std::vector<Edit> dynamic_scale(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, 0)};
}

}  // namespace

ConfigRule lamb_static_scale() {
  return {
      .rule =
          {
              .id = "ds.lamb-static-scale"_rule,
              .severity = Severity::error,
              .title = "LAMB with a static loss scale",
              .explanation = "Its fused optimizer runs with dynamic loss scaling only.",
              .source = "deepspeed/runtime/engine.py _configure_fp16_optimizer",
              .advice = "Set fp16.loss_scale to 0.",
              .repair = dynamic_scale,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = known_optimizer(s.values);
            if (optimizer && (optimizer->name == "lamb" || optimizer->name == "onebitlamb") &&
                s.values.number("fp16.loss_scale") != 0)
              report("fp16.loss_scale", "LAMB needs dynamic loss scaling", "0");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
