#include <fmt/format.h>

#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule unknown_optimizer() {
  return {
      .rule =
          {
              .id = "ds.unknown-optimizer"_rule,
              .severity = Severity::error,
              .title = "No such optimizer",
              .explanation = "The name is neither one of DeepSpeed's nor a class of torch.optim.",
              .source = kEngine,
              .advice = "Correct the name; DeepSpeed's own ignore case, torch's do not.",
              .repair = repair::set_nearest,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = optimizer_of(s.values);
            if (!optimizer || optimizer->known) return;
            report(
                "optimizer.type", say("unknown optimizer '{}'", optimizer->type),
                say("one of {} or a class of torch.optim", fmt::join(kDeepSpeedOptimizers, ", ")),
                nearest_of(optimizer->type, kDeepSpeedOptimizers, kTorchOptimizers));
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
