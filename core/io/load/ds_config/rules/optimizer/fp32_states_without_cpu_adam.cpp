#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule fp32_states_without_cpu_adam() {
  return {
      .rule =
          {
              .id = "ds.fp32-states-without-cpu-adam"_rule,
              .severity = Severity::error,
              .title = "fp32_optimizer_states for an optimizer other than CPU Adam",
              .explanation = "Only DeepSpeedCPUAdam has the argument; others refuse it.",
              .source = "deepspeed/ops/adam/cpu_adam.py",
              .advice = "Remove it, or offload the optimizer.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "optimizer.params.fp32_optimizer_states";
            const auto optimizer = known_optimizer(s.values);
            const bool torch = s.values.flag("optimizer.params.torch_adam");
            if (optimizer && optimizer->adam() && (torch || makes_fused_adam(s.values)) &&
                s.values.given(kKey) != nullptr)
              report(kKey,
                     say("only CPU Adam takes it, and this is {}",
                         torch ? "torch.optim" : "FusedAdam"),
                     "zero_optimization.offload_optimizer, or no such key");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
