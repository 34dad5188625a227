#include "base/nearest.h"
#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {
namespace {

/// engine.py _configure_basic_optimizer: what an optimizer block makes under offload.
bool makes_cpu_adam(const DsValues& values) {
  const auto type = values.maybe_text("optimizer.type");
  if (!type) return true;  // the caller brings an optimizer, which may be CPU Adam
  const std::string name = normalized(*type);
  return (name == "adam" || name == "adamw") && !values.flag("optimizer.params.torch_adam");
}

}  // namespace

ConfigRule masters_without_cpu_adam() {
  return {
      .rule =
          {
              .id = "ds.masters-without-cpu-adam"_rule,
              .severity = Severity::error,
              .title = "16-bit master weights with an optimizer other than CPU Adam",
              .explanation = "Only DeepSpeedCPUAdam updates 16-bit masters on the host.",
              .source = kMasters,
              .advice = "Use Adam or AdamW without torch_adam.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const char* key = masters_key(s.values);
            if (key != nullptr && offloads_optimizer(s.values) && !makes_cpu_adam(s.values))
              report(key,
                     say("16-bit master weights need CPU Adam, not {}",
                         s.values.maybe_text("optimizer.type").value_or("")),
                     "optimizer.type Adam or AdamW without torch_adam");
          },
  };
}

}  // namespace shardplan::config_rules::precision
