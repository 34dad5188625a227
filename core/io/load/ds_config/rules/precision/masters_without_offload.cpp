#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule masters_without_offload() {
  return {
      .rule =
          {
              .id = "ds.masters-without-offload"_rule,
              .severity = Severity::error,
              .title = "16-bit master weights with an optimizer on the GPU",
              .explanation =
                  "The GPU optimizers update fp32 masters; only CPU Adam takes 16-bit ones, or "
                  "16-bit states on top of them.",
              .source = kMasters,
              .advice = "Offload the optimizer, or set bf16.bf16_optimizer_states.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const char* key = masters_key(s.values);
            if (key == nullptr || offloads_optimizer(s.values)) return;
            const bool fp16 = s.values.flag(kFp16Masters);
            if (fp16 || !s.values.flag(kBf16States))
              report(key, "16-bit master weights need the optimizer offloaded to CPU Adam",
                     fp16 ? "zero_optimization.offload_optimizer"
                          : say("zero_optimization.offload_optimizer, or '{}'", kBf16States));
          },
  };
}

}  // namespace shardplan::config_rules::precision
