#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule torch_adam_offloaded() {
  return {
      .rule =
          {
              .id = "ds.torch-adam-offloaded"_rule,
              .severity = Severity::warning,
              .title = "torch's Adam on the host",
              .explanation = "The offloaded step runs in torch.optim, several times slower than "
                             "DeepSpeed's CPU "
                             "Adam.",
              .source = kEngine,
              .advice = "Remove optimizer.params.torch_adam.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "optimizer.params.torch_adam";
            const auto optimizer = known_optimizer(s.values);
            if (optimizer && optimizer->adam() && s.values.flag(kKey) &&
                offloads_optimizer(s.values))
              report(kKey, "the offloaded step runs in torch.optim, much slower than CPU Adam");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
