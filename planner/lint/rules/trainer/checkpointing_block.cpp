#include "lint/rules/trainer/family.h"
#include "load/ds_config/repairs.h"

namespace shardplan::lint_rules::trainer {

LintRule checkpointing_block() {
  return {
      .rule =
          {
              .id = "hf.checkpointing-block"_rule,
              .severity = Severity::warning,
              .title = "activation_checkpointing does not reach Hugging Face's models",
              .explanation =
                  "The block acts on models that call deepspeed.checkpointing. Hugging Face's "
                  "checkpoint their blocks with torch, when gradient_checkpointing is set.",
              .source =
                  "deepspeed/runtime/activation_checkpointing/checkpointing.py; transformers: "
                  "modeling_utils.py gradient_checkpointing_enable",
              .advice = "Remove the block, and set gradient_checkpointing in the arguments.",
              .repair = repair::remove_it,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            constexpr const char* kKey = "activation_checkpointing";
            // Without the arguments it matters where a model is named: those are Hugging Face's.
            if (s.values.given(kKey) == nullptr || (s.arguments == nullptr && s.model == nullptr))
              return;
            if (s.arguments == nullptr)
              report(kKey, "has no effect on Hugging Face's models",
                     "gradient_checkpointing in the program");
            else
              report(kKey,
                     s.arguments->gradient_checkpointing
                         ? "has no effect on Hugging Face's models"
                         : "has no effect on Hugging Face's models, and nothing is checkpointed",
                     "gradient_checkpointing in the training arguments");
          },
  };
}

}  // namespace shardplan::lint_rules::trainer
