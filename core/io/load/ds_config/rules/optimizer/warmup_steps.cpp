#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule warmup_steps() {
  return {
      .rule =
          {
              .id = "ds.warmup-steps"_rule,
              .severity = Severity::error,
              .title = "A warm-up of zero steps",
              .explanation =
                  "From 0.19.3 on the schedulers refuse it; before, the warm-up divided by its "
                  "logarithm.",
              .source = kSchedules,
              .advice = "Set warmup_num_steps to 1 or more.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "scheduler.params.warmup_num_steps";
            const auto type = deepspeed_scheduler(s.values);
            if (!type || *type == "LRRangeTest" || *type == "OneCycle") return;
            const bool supposed =
                std::any_of(s.autos.begin(), s.autos.end(), [&](const ResolvedAuto& a) {
                  return a.path == kKey &&
                         a.rule.text.ends_with("its default");  // the arguments are not known
                });
            const auto warmup = s.values.maybe_integer(kKey);
            if (warmup && *warmup < 1 && !supposed &&
                s.values.version() >= DeepSpeedVersion{0, 19, 3})
              report(kKey, say("found {}", *warmup), "an integer of at least 1");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
