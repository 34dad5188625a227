#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {
namespace {

std::vector<Edit> to_mean(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, "mean")};
}

}  // namespace

ConfigRule sum_reduction() {
  return {
      .rule =
          {
              .id = "ds.sum-reduction"_rule,
              .severity = Severity::error,
              .title = "gradient_allreduce_op sum where it is not supported",
              .explanation = "Not at stage 3, and not with ZenFlow or DeepCompile.",
              .source = "deepspeed/runtime/config.py _do_error_check",
              .advice = "Use mean.",
              .repair = to_mean,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "gradient_allreduce_op";
            if (s.values.text(kKey) != "sum") return;
            const auto refuse = [&](const char* what) {
              report(kKey, say("sum does not work with {}", what), "mean");
            };
            if (s.values.stage() == 3) refuse("ZeRO stage 3");
            if (s.values.given("zero_optimization.zenflow") != nullptr) refuse("ZenFlow");
            if (compiles_deeply(s.values)) refuse("DeepCompile");
          },
  };
}

}  // namespace shardplan::config_rules::zero
