// "auto": what resolves it, and what does not.
#include <fmt/format.h>

#include "lint/repairs.h"
#include "lint/rules/families.h"
#include "load/ds_config/schema.h"

namespace shardplan {
namespace {

constexpr std::string_view kTrainer =
    "transformers: integrations/deepspeed.py trainer_config_process, trainer_config_finalize";

constexpr Rule kRules[] = {
    {"auto.nobody-resolves"_rule, Severity::error, "\"auto\" that nobody resolves",
     "\"auto\" is a convention of HF Trainer and accelerate; DeepSpeed itself takes the word for a "
     "value and fails on it outside of its typed blocks.",
     "deepspeed/runtime/config_utils.py, deepspeed/runtime/config.py",
     "Write the value, or run under HF Trainer or accelerate."},
    {"auto.not-resolved"_rule, Severity::error,
     "\"auto\" that neither the trainer nor DeepSpeed resolves",
     "The trainer fills in a short list of keys; this one reaches DeepSpeed as the word \"auto\".",
     kTrainer, "Write the value."},
    {"auto.missing-input"_rule, Severity::note, "\"auto\" that depends on something not given here",
     "It is resolved when the job starts, from the model, the data or the number of ranks. The "
     "linter goes on with DeepSpeed's default.",
     kTrainer, "Give --model and --gpus to see the value."},
    {"auto.dropped"_rule, Severity::warning, "\"auto\" that silently becomes DeepSpeed's default",
     "No trainer fills this key in, and typed blocks drop the word without a message. \"auto\" "
     "does "
     "not mean that something is tuned.",
     "deepspeed/runtime/config_utils.py DeepSpeedConfigModel.__init__",
     "Write the value, or remove the key.", repair::remove_it},
    {"auto.no-hidden-size"_rule, Severity::error,
     "\"auto\" buckets for a model without hidden_size",
     "Bucket sizes are computed from the model's hidden_size; without one the trainer raises an "
     "error.",
     kTrainer, "Write numbers for the three bucket keys."},
};

constexpr const char* kFromHiddenSize[] = {"zero_optimization.reduce_bucket_size",
                                           "zero_optimization.stage3_prefetch_bucket_size",
                                           "zero_optimization.stage3_param_persistence_threshold"};

bool is_auto(const Json& document, std::string_view path) {
  const Json* value = value_at(document, path);
  return value != nullptr && value->is_string() && *value == "auto";
}

}  // namespace

std::span<const Rule> auto_rules() {
  return kRules;
}

void check_auto(const LintSubject& s, LintFindings& findings) {
  for (const ResolvedAuto& resolved : s.config.autos) {
    const DsNode* key = ds_schema().find(resolved.path);
    if (key == nullptr || !resolved.rule.text.starts_with("dropped")) continue;
    if (!key->trainer_rule.empty() || !key->accelerate_rule.empty()) continue;
    findings.config.warning(
        "auto.dropped"_rule, resolved.path,
        say("\"auto\" is filled in by nobody and dropped: DeepSpeed's default {} holds",
            resolved.value.dump()),
        "a value");
  }
  if (s.model == nullptr || s.model->facts.hidden > 0 ||
      s.context.auto_resolver == AutoResolver::nobody)
    return;
  for (const char* path : kFromHiddenSize)
    if (is_auto(s.document, path))
      findings.config.error("auto.no-hidden-size"_rule, path,
                            "\"auto\" is computed from hidden_size, which this model does not have",
                            "a number of elements");
}

}  // namespace shardplan
