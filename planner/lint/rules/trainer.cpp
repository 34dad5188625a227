// The ds_config against HF Trainer's arguments.
#include <fmt/format.h>

#include <filesystem>

#include "lint/repairs.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr std::string_view kMatch = "transformers: integrations/deepspeed.py fill_match";
constexpr std::string_view kOptimizer =
    "transformers: integrations/deepspeed.py deepspeed_optim_sched";

constexpr Rule kRules[] = {
    {"hf.batch-mismatch"_rule, Severity::error, "The batch differs from TrainingArguments",
     "HF Trainer compares the ds_config with its arguments, defaults included, and stops when they "
     "differ.",
     kMatch, "Write \"auto\" in the ds_config, and the number in the arguments.", repair::set_auto},
    {"hf.optimizer-mismatch"_rule, Severity::error, "The optimizer differs from TrainingArguments",
     "Learning rate, betas, epsilon and weight decay are compared one by one.", kMatch,
     "Write \"auto\" in the ds_config.", repair::set_auto},
    {"hf.scheduler-mismatch"_rule, Severity::error, "The scheduler differs from TrainingArguments",
     "Warm-up and total steps are compared with the arguments.", kMatch,
     "Write \"auto\" in the ds_config.", repair::set_auto},
    {"hf.precision-mismatch"_rule, Severity::error, "fp16 or bf16 differs from TrainingArguments",
     "The Trainer casts by its own arguments and stops when the engine would use another type.",
     kMatch, "Write \"auto\" in the ds_config.", repair::set_auto},
    {"hf.clipping-mismatch"_rule, Severity::error, "Clipping differs from max_grad_norm",
     "max_grad_norm is 1.0 unless it is set, and gradient_clipping must be the same.", kMatch,
     "Write \"auto\" in the ds_config.", repair::set_auto},
    {"hf.wrong-type"_rule, Severity::error, "A training argument of the wrong type",
     "HfArgumentParser or the Trainer fails on it.", "transformers: training_args.py",
     "Write the value in the type that is shown."},
    {"hf.misspelt-argument"_rule, Severity::warning,
     "No argument of TrainingArguments, but near to one",
     "parse_json_file refuses names that no dataclass of the program has.",
     "transformers: hf_argparser.py parse_dict", "Correct the spelling."},
    {"hf.fp16-and-bf16"_rule, Severity::error, "fp16 and bf16 are both set in the arguments",
     "TrainingArguments raises an error.", "transformers: training_args.py __post_init__",
     "Keep one of the two."},
    {"hf.adafactor-with-optimizer"_rule, Severity::error, "Adafactor beside an optimizer block",
     "The Trainer stops: only one of the two can be configured.", kOptimizer,
     "Remove the optimizer block, or the argument."},
    {"hf.optim-unused"_rule, Severity::warning, "optim has no effect beside an optimizer block",
     "With an optimizer block DeepSpeed makes the optimizer; the argument is not looked at.",
     kOptimizer, "Remove the optimizer block to use optim, or the argument."},
    {"hf.scheduler-unused"_rule, Severity::warning,
     "lr_scheduler_type has no effect beside a scheduler block",
     "With a scheduler block DeepSpeed makes the scheduler; the argument is not looked at.",
     kOptimizer, "Remove the scheduler block to use lr_scheduler_type, or the argument."},
    {"hf.checkpointing-block"_rule, Severity::warning,
     "activation_checkpointing does not reach Hugging Face's models",
     "The block acts on models that call deepspeed.checkpointing. Hugging Face's checkpoint their "
     "blocks with torch, when gradient_checkpointing is set.",
     "deepspeed/runtime/activation_checkpointing/checkpointing.py; transformers: modeling_utils.py "
     "gradient_checkpointing_enable",
     "Remove the block, and set gradient_checkpointing in the arguments.", repair::remove_it},
    {"hf.other-config"_rule, Severity::warning, "The arguments name another ds_config",
     "The Trainer reads the file that its own argument names.", "transformers: training_args.py",
     "Pass the file that the job will use."},
};

std::string name_of_file(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

/// The models that the linter is told of are Hugging Face's.
void check_block_of_model(const LintSubject& s, LintFindings& findings) {
  if (s.model == nullptr || s.values.given("activation_checkpointing") == nullptr) return;
  findings.config.warning("hf.checkpointing-block"_rule, "activation_checkpointing",
                          "has no effect on Hugging Face's models",
                          "gradient_checkpointing in the program");
}

}  // namespace

std::span<const Rule> trainer_rules() {
  return kRules;
}

void check_trainer(const LintSubject& s, LintFindings& findings) {
  if (s.arguments == nullptr) {
    check_block_of_model(s, findings);
    return;
  }
  const TrainingArguments& a = *s.arguments;
  const bool optimizer = s.values.given("optimizer") != nullptr;
  if (optimizer && a.adafactor)
    findings.config.error("hf.adafactor-with-optimizer"_rule, "optimizer",
                          "the training arguments ask for Adafactor", "one of the two");
  else if (optimizer && a.optimizer)
    findings.arguments.warning(
        "hf.optim-unused"_rule, "optim",
        say("{} has no effect: the ds_config has an optimizer block", *a.optimizer));
  if (a.scheduler && s.values.given("scheduler") != nullptr)
    findings.arguments.warning(
        "hf.scheduler-unused"_rule, "lr_scheduler_type",
        say("{} has no effect: the ds_config has a scheduler block", *a.scheduler));
  if (s.values.given("activation_checkpointing") != nullptr)
    findings.config.warning(
        "hf.checkpointing-block"_rule, "activation_checkpointing",
        a.gradient_checkpointing
            ? "has no effect on Hugging Face's models"
            : "has no effect on Hugging Face's models, and nothing is checkpointed",
        "gradient_checkpointing in the training arguments");
  const std::string& linted = findings.config.file();
  if (a.deepspeed && name_of_file(*a.deepspeed) != name_of_file(linted))
    findings.arguments.warning("hf.other-config"_rule, "deepspeed",
                               say("names {}, and {} is linted", *a.deepspeed, linted));
}

}  // namespace shardplan
