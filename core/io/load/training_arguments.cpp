#include "load/training_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "base/nearest.h"
#include "json/reader.h"
#include "load/ds_config/values.h"

namespace shardplan {
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

class Reader {
 public:
  Reader(const Json& document, DsFindings& findings) : document_(document), findings_(findings) {}

  const Json* find(const char* key) const {
    const auto it = document_.find(key);
    return it == document_.end() || it->is_null() ? nullptr : &*it;
  }

  std::optional<std::int64_t> integer(const char* key, std::int64_t least) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number_integer() && value->get<std::int64_t>() >= least)
      return value->get<std::int64_t>();
    return wrong(key, *value, "an integer of at least " + std::to_string(least));
  }

  std::optional<double> number(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number()) return value->get<double>();
    return wrong(key, *value, "a number");
  }

  bool flag(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    wrong(key, *value, "true or false");
    return false;
  }

  std::optional<std::string> text(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) return value->get<std::string>();
    return wrong(key, *value, "a string");
  }

 private:
  std::nullopt_t wrong(const char* key, const Json& value, std::string expected) {
    findings_.error("hf.wrong-type"_rule, key, say("found {}", describe(value)),
                    std::move(expected));
    return std::nullopt;
  }

  const Json& document_;
  DsFindings& findings_;
};

bool differs_in_one_place(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size()), longer = std::max(a.size(), b.size());
  std::size_t front = 0, back = 0;
  while (front < shorter && a[front] == b[front]) ++front;
  while (front + back < shorter && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  constexpr std::size_t kLongName = 10;
  return front + back + (longer < kLongName ? 1 : 2) >= longer;
}

void report_misspelt(const Json& document, DsFindings& findings) {
  for (const auto& [name, value] : document.items()) {
    if (std::find(kArguments.begin(), kArguments.end(), name) != kArguments.end()) continue;
    const std::string near = nearest(name, std::span<const std::string_view>(kArguments));
    // A script's own arguments are no mistakes: only what differs in one place does, by a letter,
    // or two in a long name.
    if (near.empty() || !differs_in_one_place(name, near)) continue;
    findings.warning("hf.misspelt-argument"_rule, name, "no argument of TrainingArguments", "",
                     near);
  }
}

/// TrainingArguments.get_warmup_steps: steps, or a part of all steps; nullopt when those are not
/// known.
std::optional<std::int64_t> warmup_steps(Reader& read, std::optional<std::int64_t> total) {
  const double steps = read.number("warmup_steps").value_or(0);
  const double ratio = steps > 0 && steps < 1 ? steps : read.number("warmup_ratio").value_or(0);
  if (steps >= 1) return static_cast<std::int64_t>(steps);
  if (ratio == 0) return 0;
  if (!total) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(*total) * ratio));
}

}  // namespace

TrainingArguments read_training_arguments(std::string_view text, const std::string& file,
                                          DsFindings& findings) {
  TrainingArguments result;
  result.file = file;
  result.positions = find_positions(text);
  result.document = parse_json(text, file);
  ObjectReader(result.document, file);  // an object, or an error
  Reader read(result.document, findings);
  report_misspelt(result.document, findings);

  TrainerArguments& v = result.values;
  result.micro_batch = read.integer("per_device_train_batch_size", 1).value_or(8);
  if (!read.flag("auto_find_batch_size")) v.per_device_train_batch_size = result.micro_batch;
  v.gradient_accumulation_steps = read.integer("gradient_accumulation_steps", 1).value_or(1);
  v.max_grad_norm = read.number("max_grad_norm").value_or(1.0);
  v.learning_rate = read.number("learning_rate").value_or(5e-5);
  v.adam_betas = {read.number("adam_beta1").value_or(0.9),
                  read.number("adam_beta2").value_or(0.999)};
  v.adam_epsilon = read.number("adam_epsilon").value_or(1e-8);
  v.weight_decay = read.number("weight_decay").value_or(0.0);
  if (const auto steps = read.integer("max_steps", -1); steps && *steps > 0) v.total_steps = steps;
  v.warmup_steps = warmup_steps(read, v.total_steps);
  const bool fp16 = read.flag("fp16");
  const bool bf16 = read.flag("bf16");
  if (fp16 && bf16)
    findings.error("hf.fp16-and-bf16"_rule, "bf16", "fp16 and bf16 are both set", "one of the two");
  v.fp16 = read.flag("fp16_full_eval") || fp16;
  v.bf16 = read.flag("bf16_full_eval") || bf16;

  if (const Json* deepspeed = read.find("deepspeed"); deepspeed && deepspeed->is_string())
    result.deepspeed = deepspeed->get<std::string>();
  result.optimizer = read.text("optim");
  result.scheduler = read.text("lr_scheduler_type");
  result.gradient_checkpointing = read.flag("gradient_checkpointing");
  result.adafactor = read.flag("adafactor") || result.optimizer == "adafactor";
  return result;
}

}  // namespace shardplan
