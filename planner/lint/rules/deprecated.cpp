// Spellings of earlier versions.
#include "lint/repairs.h"
#include "lint/rules/families.h"
#include "load/ds_config/values.h"

namespace shardplan {
namespace {

constexpr std::string_view kField =
    "deepspeed/runtime/config_utils.py _process_deprecated_field, deepspeed/runtime/zero/config.py";

std::vector<Edit> expand_boolean(const Diagnostic& finding, const Json& document) {
  const Json* value = value_at(document, finding.key);
  if (value == nullptr || !value->is_boolean()) return {};
  return {set_key(finding.key, Json{{"stage", value->get<bool>() ? 1 : 0}})};
}

constexpr Rule kRules[] = {
    {"ds.deprecated-key"_rule, Severity::warning, "A deprecated spelling",
     "DeepSpeed still moves the value to the new key, with a warning in the log.", kField,
     "Write the new key.", repair::move_deprecated_key},
    {"ds.deprecated-twice"_rule, Severity::error, "A deprecated key beside its replacement",
     "DeepSpeed stops: it cannot know which of the two is meant.", kField,
     "Keep the replacement only.", repair::remove_it},
    {"ds.deprecated-shadowed"_rule, Severity::warning,
     "A deprecated key that its replacement silently overrules",
     "Only the new key is read when both are there.",
     "deepspeed/runtime/config.py get_bfloat16_config", "Remove the old key.", repair::remove_it},
    {"ds.deprecated-ignored"_rule, Severity::warning, "A deprecated key that is no longer read",
     "It changes nothing; what it did is said elsewhere now.", kField, "Use the key that is shown.",
     repair::remove_it},
    {"ds.alias-twice"_rule, Severity::error, "Two names of one key",
     "Both spellings are accepted, but one value would silently win.",
     "deepspeed/runtime/zero/config.py, pydantic's populate_by_name", "Keep one of the two.",
     repair::remove_it},
    {"ds.boolean-zero"_rule, Severity::warning, "zero_optimization as true or false",
     "The form of 2020: true means stage 1, not the stage that the job may have been planned with.",
     "deepspeed/runtime/zero/config.py read_zero_config_deprecated",
     "Write a block with the stage.", expand_boolean},
    {"ds.allgather-size-unread"_rule, Severity::warning, "allgather_size without a boolean ZeRO",
     "It is read only beside \"zero_optimization\": true.",
     "deepspeed/runtime/zero/config.py read_zero_config_deprecated",
     "Use zero_optimization.allgather_bucket_size.", repair::remove_it},
    {"ds.old-block"_rule, Severity::warning, "An old block that is still read",
     "A newer block does the same and more; the old one is kept for old programs.",
     "deepspeed/runtime/data_pipeline/config.py, deepspeed/compression/config.py",
     "Move to the block that is shown when the program allows it."},
};

}  // namespace

std::span<const Rule> deprecated_rules() {
  return kRules;
}

}  // namespace shardplan
