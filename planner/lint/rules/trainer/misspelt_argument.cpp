#include <algorithm>
#include <array>
#include <span>

#include "base/nearest.h"
#include "lint/rules/trainer/family.h"

namespace shardplan::lint_rules::trainer {
namespace {

/// Fields of TrainingArguments, transformers 4.30 to 5, that a configuration under DeepSpeed is
/// likely to have (src/transformers/training_args.py).
constexpr std::array<std::string_view, 84> kArguments{
    "adafactor",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "auto_find_batch_size",
    "average_tokens_across_devices",
    "bf16",
    "bf16_full_eval",
    "data_seed",
    "dataloader_drop_last",
    "dataloader_num_workers",
    "dataloader_persistent_workers",
    "dataloader_pin_memory",
    "dataloader_prefetch_factor",
    "ddp_backend",
    "ddp_bucket_cap_mb",
    "ddp_find_unused_parameters",
    "ddp_timeout",
    "deepspeed",
    "disable_tqdm",
    "do_eval",
    "do_predict",
    "do_train",
    "eval_accumulation_steps",
    "eval_delay",
    "eval_on_start",
    "eval_steps",
    "eval_strategy",
    "evaluation_strategy",
    "fp16",
    "fp16_backend",
    "fp16_full_eval",
    "fp16_opt_level",
    "fsdp",
    "fsdp_config",
    "full_determinism",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "gradient_checkpointing_kwargs",
    "group_by_length",
    "half_precision_backend",
    "hub_model_id",
    "include_num_input_tokens_seen",
    "label_names",
    "label_smoothing_factor",
    "learning_rate",
    "length_column_name",
    "load_best_model_at_end",
    "local_rank",
    "logging_dir",
    "logging_first_step",
    "logging_steps",
    "logging_strategy",
    "lr_scheduler_kwargs",
    "lr_scheduler_type",
    "max_grad_norm",
    "max_steps",
    "metric_for_best_model",
    "neftune_noise_alpha",
    "num_train_epochs",
    "optim",
    "optim_args",
    "output_dir",
    "per_device_eval_batch_size",
    "per_device_train_batch_size",
    "prediction_loss_only",
    "push_to_hub",
    "remove_unused_columns",
    "report_to",
    "resume_from_checkpoint",
    "run_name",
    "save_on_each_node",
    "save_only_model",
    "save_safetensors",
    "save_steps",
    "save_strategy",
    "save_total_limit",
    "seed",
    "tf32",
    "torch_compile",
    "torch_empty_cache_steps",
    "use_cpu",
    "use_liger_kernel",
    "warmup_steps",
};

bool differs_in_one_place(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size()), longer = std::max(a.size(), b.size());
  std::size_t front = 0, back = 0;
  while (front < shorter && a[front] == b[front]) ++front;
  while (front + back < shorter && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  constexpr std::size_t kLongName = 10;
  return front + back + (longer < kLongName ? 1 : 2) >= longer;
}

}  // namespace

ArgumentsRule misspelt_argument() {
  return {
      .rule =
          {
              .id = "hf.misspelt-argument"_rule,
              .severity = Severity::warning,
              .title = "Not an argument of TrainingArguments, but close to one",
              .explanation = "parse_json_file refuses names that no dataclass of the program has.",
              .source = "transformers: hf_argparser.py parse_dict",
              .advice = "Correct the spelling.",
              .file = RuleFile::arguments,
          },
      .check =
          [](const TrainingArguments& a, const Report& report) {
            for (const auto& [name, value] : a.document.items()) {
              if (std::find(kArguments.begin(), kArguments.end(), name) != kArguments.end())
                continue;
              const std::string near = nearest(name, std::span<const std::string_view>(kArguments));
              // A script's own arguments are no mistakes: only what differs in one place does, by a
              // letter, or two in a long name.
              if (near.empty() || !differs_in_one_place(name, near)) continue;
              report(name, "not an argument of TrainingArguments", "", near);
            }
          },
  };
}

}  // namespace shardplan::lint_rules::trainer
