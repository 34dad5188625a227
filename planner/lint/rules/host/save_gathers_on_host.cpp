#include "base/checked.h"
#include "base/format.h"
#include "lint/rules/host/family.h"

namespace shardplan::lint_rules::host {

LintRule save_gathers_on_host() {
  return {
      .rule =
          {
              .id = "save.gathers-on-host"_rule,
              .severity = Severity::warning,
              .title = "Saving needs the whole model on one host",
              .explanation = "stage3_gather_16bit_weights_on_model_save collects all 16-bit "
                             "weights on rank 0, "
                             "on top of what is offloaded there.",
              .source =
                  "deepspeed/runtime/engine.py _zero3_consolidated_16bit_state_dict; issue 893 of "
                  "DeepSpeed",
              .advice = "Save shards, and convert them with zero_to_fp32 elsewhere.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const auto host = host_memory(s);
            if (!host || s.values.stage() != 3 || !s.values.flag(kGather)) return;
            constexpr std::int64_t kHalf = 2;
            const std::int64_t whole = checked_mul(s.priced->job().model.parameter_count(), kHalf);
            const std::int64_t offloaded = s.priced->price().host;
            if (checked_add(whole, offloaded) > *host)
              report(kGather,
                     say("collects {} on a host of {} that holds {} already", format_bytes(whole),
                         format_bytes(*host), format_bytes(offloaded)),
                     "false");
          },
  };
}

}  // namespace shardplan::lint_rules::host
