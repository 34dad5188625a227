// Single keys: known or not, of the right type, in range.
#include "lint/repairs.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr std::string_view kTyped = "deepspeed/runtime/config_utils.py DeepSpeedConfigModel";
constexpr std::string_view kPlain = "deepspeed/runtime/config.py, where blocks are dictionaries";
constexpr std::string_view kSchema = "data/deepspeed/schema.json, from DeepSpeed's sources";

constexpr Rule kRules[] = {
    {"ds.unknown-key"_rule, Severity::error, "DeepSpeed does not know this key and refuses it",
     "Blocks with a schema of their own forbid unknown keys: the job stops at start-up with a "
     "validation error.",
     kTyped, "Correct the spelling, or remove the key.", repair::rename_to_nearest},
    {"ds.unknown-key-ignored"_rule, Severity::warning,
     "DeepSpeed does not know this key and ignores it",
     "At the top level and in plain dictionaries an unknown key is never looked at: what it was "
     "meant "
     "to change stays at its default.",
     kPlain, "Correct the spelling, or remove the key.", repair::rename_to_nearest},
    {"ds.unknown-argument"_rule, Severity::warning,
     "Not a known argument of the optimizer or scheduler",
     "The block is handed to a constructor, which refuses arguments that it does not have.",
     "deepspeed/runtime/engine.py _configure_basic_optimizer", "Check the class's own arguments.",
     repair::rename_to_nearest},
    {"ds.inference-key"_rule, Severity::error,
     "A key of deepspeed.init_inference() in a typed block",
     "Training's block of that name has other keys and refuses this one.",
     "deepspeed/inference/config.py, deepspeed/runtime/tensor_parallel/config.py",
     "Use the key of training, or pass this one to init_inference().", repair::rename_to_nearest},
    {"ds.inference-key-ignored"_rule, Severity::warning, "A key of deepspeed.init_inference()",
     "deepspeed.initialize() never reads it.", "deepspeed/inference/config.py",
     "Remove it, or pass it to init_inference().", repair::remove_it},
    {"ds.key-of-other-version"_rule, Severity::error,
     "A key that this version of DeepSpeed refuses",
     "The key came with a later version, or went with an earlier one, and its block forbids "
     "unknown "
     "keys.",
     kSchema, "Use a version that knows it, or remove it.", repair::remove_it},
    {"ds.key-of-other-version-ignored"_rule, Severity::warning,
     "A key that this version of DeepSpeed does not read",
     "The key came with a later version, or went with an earlier one; here it changes nothing.",
     kSchema, "Use a version that knows it, or remove it.", repair::remove_it},
    {"ds.wrong-type"_rule, Severity::error, "A value of the wrong type",
     "DeepSpeed refuses it, or misreads it later: in plain dictionaries a string stays a string "
     "and "
     "fails where it is computed with.",
     kTyped, "Write the value in the type that is shown.", repair::set_as_read},
    {"ds.out-of-range"_rule, Severity::error, "A value out of range",
     "DeepSpeed refuses it at start-up or fails at the first step.", kSchema,
     "Choose a value within the range that is shown."},
    {"ds.not-a-choice"_rule, Severity::error, "A value that is none of the allowed ones",
     "DeepSpeed compares it with a list of names and refuses others.", kSchema,
     "Choose one of the names that are shown.", repair::set_nearest},
    {"ds.not-an-object"_rule, Severity::error, "A block that is no object",
     "DeepSpeed looks keys up in it and fails.", kTyped, "Write { } around the block's keys."},
    {"ds.misread-value"_rule, Severity::warning, "A value that is read as another type",
     "It works, by a conversion that the next version may not make.", kTyped,
     "Write the value in the type that DeepSpeed reads it as.", repair::set_as_read},
    {"ds.null-value"_rule, Severity::error, "null where a value must be",
     "Typed blocks refuse null; at the top level it takes the place of the default and fails in "
     "use.",
     kTyped, "Remove the key, and the default holds.", repair::remove_it},
    {"ds.null-replaces-default"_rule, Severity::warning, "null takes the place of the default",
     "In plain dictionaries null is a value like others: the default does not hold any more.",
     "deepspeed/runtime/config_utils.py get_scalar_param", "Remove the key.", repair::remove_it},
    {"ds.number-too-large"_rule, Severity::error, "A product of the file's numbers exceeds 64 bits",
     "Batch sizes or buckets multiply to a number that no machine has room for.",
     "deepspeed/runtime/config.py _set_batch_related_parameters", "Look for a zero too many."},
};

}  // namespace

std::span<const Rule> key_rules() {
  return kRules;
}

}  // namespace shardplan
