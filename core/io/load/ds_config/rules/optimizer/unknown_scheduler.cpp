#include <fmt/format.h>

#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule unknown_scheduler() {
  return {
      .rule =
          {
              .id = "ds.unknown-scheduler"_rule,
              .severity = Severity::error,
              .title = "No such scheduler",
              .explanation = "The name is neither one of DeepSpeed's five nor a class of "
                             "torch.optim.lr_scheduler.",
              .source = "deepspeed/runtime/engine.py _scheduler_from_config",
              .advice = "Correct the name.",
              .repair = repair::set_nearest,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto type = s.values.maybe_text("scheduler.type");
            if (s.values.given("scheduler") == nullptr || !type ||
                contains(kDeepSpeedSchedulers, *type) || contains(kTorchSchedulers, *type))
              return;
            report("scheduler.type", say("unknown scheduler '{}'", *type),
                   say("one of {} or a class of torch.optim.lr_scheduler",
                       fmt::join(kDeepSpeedSchedulers, ", ")),
                   nearest_of(*type, kDeepSpeedSchedulers, kTorchSchedulers));
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
