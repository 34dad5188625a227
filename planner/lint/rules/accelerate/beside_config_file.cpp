#include <fmt/format.h>

#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule beside_config_file() {
  return {
      .rule =
          {
              .id = "accelerate.beside-config-file"_rule,
              .severity = Severity::error,
              .title = "A setting that is not allowed beside deepspeed_config_file",
              .explanation =
                  "With a ds_config file, accelerate refuses stage, offload, accumulation, "
                  "clipping and mixed_precision in its own file.",
              .source = "accelerate: utils/dataclasses.py _deepspeed_config_checks",
              .advice = "Remove it from the YAML; set it in the ds_config.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const AccelerateConfig* a = deepspeed_launch(s);
            if (a == nullptr || !a->deepspeed_file) return;
            constexpr const char* kRefused = "accelerate refuses it beside deepspeed_config_file";
            for (const char* key :
                 {"zero_stage", "gradient_accumulation_steps", "gradient_clipping",
                  "offload_optimizer_device", "offload_param_device", "offload_optimizer_nvme_path",
                  "offload_param_nvme_path", "zero3_save_16bit_model"})
              if (a->deepspeed_key(key) != nullptr)
                report(fmt::format("deepspeed_config.{}", key), kRefused,
                       "the ds_config's own key");
            if (a->mixed_precision)
              report("mixed_precision", kRefused, "fp16 or bf16 in the ds_config");
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
