#include "load/ds_config/rules/optimizer/family.h"
#include "load/ds_config/values.h"

namespace shardplan::config_rules::optimizer {
namespace {

std::vector<Edit> clip_gradients(const Diagnostic& finding, const Json& document) {
  if (value_at(document, "gradient_clipping") != nullptr) return {remove_key(finding.key)};
  return {rename_key(finding.key, "gradient_clipping")};
}

}  // namespace

ConfigRule max_grad_norm() {
  return {
      .rule =
          {
              .id = "ds.max-grad-norm"_rule,
              .severity = Severity::error,
              .title = "max_grad_norm inside optimizer.params",
              .explanation =
                  "It is not an argument of the optimizer: DeepSpeed zeroes or refuses it, and "
                  "nothing is clipped.",
              .source = "deepspeed/runtime/config.py _do_warning_check, engine.py "
                        "_configure_basic_optimizer",
              .advice = "Use gradient_clipping at the top level.",
              .repair = clip_gradients,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "optimizer.params.max_grad_norm";
            if (known_optimizer(s.values) && s.values.given(kKey) != nullptr)
              report(kKey, "not an argument of the optimizer",
                     "'gradient_clipping' at the top level");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
