// The ds_config against accelerate's YAML, and accelerate's against itself.
#include <fmt/format.h>

#include <filesystem>

#include "json/reader.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr std::string_view kConfig = "accelerate: commands/config/config_args.py";
constexpr std::string_view kPlugin = "accelerate: utils/dataclasses.py DeepSpeedPlugin";

constexpr Rule kRules[] = {
    {"yaml.syntax"_rule, Severity::error, "accelerate's file is no YAML", "Nothing of it is read.",
     "YAML 1.1, as PyYAML's safe_load reads it",
     "Correct the text at the place that is shown; tabs and unquoted colons are the usual "
     "reasons."},
    {"accelerate.unknown-key"_rule, Severity::error, "accelerate refuses this key",
     "Unknown top-level keys raise an error before anything starts.", kConfig,
     "Correct the spelling, or move the key into its block."},
    {"accelerate.unknown-deepspeed-key"_rule, Severity::warning,
     "accelerate ignores this key of deepspeed_config",
     "Keys of the block become launch arguments; those that no code reads do nothing.",
     "accelerate: commands/launch.py", "Correct the spelling, or remove it."},
    {"accelerate.wrong-type"_rule, Severity::error, "A value of the wrong type",
     "PyYAML reads 1e-5 without a point, and anything in quotes, as text.", kConfig,
     "Write the value in the type that is shown."},
    {"accelerate.no-distributed-type"_rule, Severity::error, "No distributed_type",
     "accelerate raises an error without it.", kConfig, "Set distributed_type: DEEPSPEED."},
    {"accelerate.not-deepspeed"_rule, Severity::warning, "distributed_type is not DEEPSPEED",
     "accelerate launch then starts without DeepSpeed, and the ds_config is never read.",
     "accelerate: commands/launch.py launch_command", "Set distributed_type: DEEPSPEED."},
    {"accelerate.beside-config-file"_rule, Severity::error,
     "A setting that may not stand beside deepspeed_config_file",
     "With a ds_config file, accelerate refuses stage, offload, accumulation, clipping and "
     "mixed_precision in its own file.",
     "accelerate: utils/dataclasses.py _deepspeed_config_checks",
     "Remove it from the YAML; set it in the ds_config."},
    {"accelerate.other-config"_rule, Severity::warning, "accelerate names another ds_config",
     "The job reads the file that deepspeed_config_file names.", kPlugin,
     "Lint the file that the job will use."},
    {"accelerate.processes"_rule, Severity::error, "num_processes differs from the GPUs",
     "The batch and the shards are computed for another number of ranks.",
     "accelerate: commands/launch.py", "Set num_processes to the number of GPUs."},
    {"accelerate.uneven-machines"_rule, Severity::error,
     "num_processes does not divide by num_machines",
     "Every machine starts num_processes / num_machines.", "accelerate: utils/launch.py",
     "Use a multiple of num_machines."},
    {"accelerate.zero3-init"_rule, Severity::warning, "zero3_init_flag without stage 3",
     "It is switched off with a warning: the model is built whole on every rank.", kPlugin,
     "Set it to false, or use stage 3."},
    {"accelerate.mixed-precision"_rule, Severity::error,
     "mixed_precision contradicts the ds_config",
     "accelerate refuses bf16 beside an enabled fp16 block, and the reverse.",
     "accelerate: utils/dataclasses.py set_mixed_precision", "Use one type in both."},
    {"accelerate.trainer-precision"_rule, Severity::error,
     "mixed_precision contradicts TrainingArguments",
     "The launcher and the Trainer each set the type; the ds_config can follow only one.",
     "transformers: training_args.py; accelerate: commands/launch.py", "Use one type in both."},
    {"accelerate.accumulation"_rule, Severity::error,
     "gradient_accumulation_steps differs from TrainingArguments",
     "The plugin writes its number into the ds_config, and the Trainer compares it with its own.",
     "accelerate: utils/dataclasses.py DeepSpeedPlugin; transformers: integrations/deepspeed.py",
     "Use one number in both."},
    {"accelerate.fsdp-no-wrap"_rule, Severity::warning, "FSDP without a wrapping policy",
     "The whole model is one unit: every gather holds all parameters, and sharding saves nothing "
     "at "
     "the peak.",
     "accelerate: utils/dataclasses.py FullyShardedDataParallelPlugin",
     "Use TRANSFORMER_BASED_WRAP."},
};

std::string name_of_file(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void check_beside_config(const AccelerateConfig& a, DsFindings& findings) {
  if (!a.deepspeed_file) return;
  for (const char* key :
       {"zero_stage", "gradient_accumulation_steps", "gradient_clipping",
        "offload_optimizer_device", "offload_param_device", "offload_optimizer_nvme_path",
        "offload_param_nvme_path", "zero3_save_16bit_model"})
    if (a.deepspeed_key(key) != nullptr)
      findings.error("accelerate.beside-config-file"_rule, fmt::format("deepspeed_config.{}", key),
                     "accelerate refuses it beside deepspeed_config_file",
                     "the ds_config's own key");
  if (a.mixed_precision)
    findings.error("accelerate.beside-config-file"_rule, "mixed_precision",
                   "accelerate refuses it beside deepspeed_config_file",
                   "fp16 or bf16 in the ds_config");
}

void check_launch(const LintSubject& s, const AccelerateConfig& a, DsFindings& findings) {
  if (a.processes && s.cluster != nullptr && *a.processes != s.cluster->world())
    findings.error(
        "accelerate.processes"_rule, "num_processes",
        say("{}, but {} has {} GPUs", *a.processes, s.cluster->label, s.cluster->world()),
        say("{}", s.cluster->world()));
  if (a.processes && a.machines > 1 && *a.processes % a.machines != 0)
    findings.error("accelerate.uneven-machines"_rule, "num_processes",
                   say("{} processes on {} machines", *a.processes, a.machines),
                   say("a multiple of {}", a.machines));
  const Json* policy = a.fsdp_key("fsdp_auto_wrap_policy");
  if (a.distributed_type == "FSDP" && policy != nullptr && *policy == "NO_WRAP")
    findings.warning("accelerate.fsdp-no-wrap"_rule, "fsdp_config.fsdp_auto_wrap_policy",
                     "NO_WRAP gathers the whole model at once", "TRANSFORMER_BASED_WRAP");
}

void check_precision_of(const LintSubject& s, const AccelerateConfig& a, LintFindings& findings) {
  if (!a.mixed_precision) return;
  const std::string& type = *a.mixed_precision;
  const bool fp16 = type == "fp16", bf16 = type == "bf16";
  const char* other = fp16 ? "bf16.enabled" : "fp16.enabled";
  if ((fp16 || bf16) && s.values.flag(other))
    findings.accelerate.error("accelerate.mixed-precision"_rule, "mixed_precision",
                              say("{}, but {} enables {}", type, findings.config.file(), other),
                              "the same type in both");
  if (s.arguments == nullptr || !(fp16 || bf16)) return;
  const TrainerArguments& t = s.arguments->values;
  if ((fp16 && t.bf16.value_or(false)) || (bf16 && t.fp16.value_or(false)))
    findings.accelerate.error(
        "accelerate.trainer-precision"_rule, "mixed_precision",
        say("{}, but {} sets {}", type, s.arguments->file, fp16 ? "bf16" : "fp16"),
        "the same type in both");
}

}  // namespace

std::span<const Rule> accelerate_rules() {
  return kRules;
}

void check_accelerate(const LintSubject& s, LintFindings& findings) {
  if (s.accelerate == nullptr) return;
  const AccelerateConfig& a = *s.accelerate;
  check_launch(s, a, findings.accelerate);
  if (!a.distributed_type.empty() && !a.deepspeed()) {
    if (a.distributed_type != "FSDP" || a.document.contains("deepspeed_config"))
      findings.accelerate.warning("accelerate.not-deepspeed"_rule, "distributed_type",
                                  say("{} starts without DeepSpeed", a.distributed_type),
                                  "DEEPSPEED");
    return;
  }
  check_beside_config(a, findings.accelerate);
  if (!a.deepspeed_file || !a.mixed_precision) check_precision_of(s, a, findings);
  const std::string& linted = findings.config.file();
  if (a.deepspeed_file && name_of_file(*a.deepspeed_file) != name_of_file(linted))
    findings.accelerate.warning("accelerate.other-config"_rule,
                                "deepspeed_config.deepspeed_config_file",
                                say("names {}, and {} is linted", *a.deepspeed_file, linted));
  const Json* init = a.deepspeed_key("zero3_init_flag");
  if (init != nullptr && *init == true && s.values.stage() != 3)
    findings.accelerate.warning("accelerate.zero3-init"_rule, "deepspeed_config.zero3_init_flag",
                                say("has no effect at stage {}", s.values.stage()), "false");
  const Json* steps = a.deepspeed_key("gradient_accumulation_steps");
  if (s.arguments != nullptr && !a.deepspeed_file && steps != nullptr &&
      steps->is_number_integer() && *steps != *s.arguments->values.gradient_accumulation_steps)
    findings.accelerate.error("accelerate.accumulation"_rule,
                              "deepspeed_config.gradient_accumulation_steps",
                              say("{}, but {} has {}", describe(*steps), s.arguments->file,
                                  *s.arguments->values.gradient_accumulation_steps),
                              "the same number in both");
}

}  // namespace shardplan
