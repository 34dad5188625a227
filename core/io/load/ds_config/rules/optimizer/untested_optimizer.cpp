#include <array>

#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {
namespace {

std::vector<Edit> allow_untested(const Diagnostic&, const Json&) {
  return {set_key("zero_allow_untested_optimizer", true)};
}

/// zero/utils.py ZERO_SUPPORTED_OPTIMIZERS.
constexpr std::array<std::string_view, 5> kTested{"adam", "adamw", "adagrad", "lion", "muon"};

}  // namespace

ConfigRule untested_optimizer() {
  return {
      .rule =
          {
              .id = "ds.untested-optimizer"_rule,
              .severity = Severity::error,
              .title = "An optimizer that ZeRO was not tested with",
              .explanation = "DeepSpeed refuses it unless the file allows untested optimizers.",
              .source = "deepspeed/runtime/engine.py _do_optimizer_sanity_check",
              .advice = "Set zero_allow_untested_optimizer, or take Adam, AdamW, Adagrad, Lion or "
                        "Muon.",
              .repair = allow_untested,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = known_optimizer(s.values);
            if (optimizer && s.values.stage() > 0 && !contains(kTested, optimizer->name) &&
                !optimizer->one_bit() && !s.values.flag("zero_allow_untested_optimizer"))
              report("optimizer.type",
                     say("ZeRO was not tested with {} and refuses it", optimizer->type),
                     "'zero_allow_untested_optimizer': true");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
