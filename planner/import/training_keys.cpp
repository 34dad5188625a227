#include "import/training_keys.h"

#include <fmt/format.h>

#include <array>

#include "import/fsdp.h"
#include "import/vocabulary.h"

namespace shardplan::importing {
namespace {

Json block_of(Key& key, const Json* block) {
  if (block == nullptr || block->is_null()) return Json::object();
  if (!block->is_string()) return *block;
  const std::string path = resolved_path(block->get<std::string>(), key.document().file);
  if (path.empty())
    key.refuse(fmt::format("no file '{}'", block->get<std::string>()), "fsdp_config: a mapping");
  return read_json_file(path);
}

void read_trainer_fsdp(Key& key) {
  const Json& value = key.value();
  std::string words;
  if (value.is_array())
    for (const std::string& word : key.list()) words += word + " ";
  else if (value.is_string())
    words = value.get<std::string>();
  else if (!key.flag())
    return key.ignore("no FSDP");
  if (words.empty() && !value.is_boolean()) return key.ignore("no FSDP");
  read_fsdp_block(key, block_of(key, key.other("fsdp_config")), words, kTransformersFsdp);
}

void read_trainer_fsdp_config(Key& key) {
  const Json* fsdp = key.other("fsdp");
  const bool used = fsdp != nullptr && !fsdp->is_null() && *fsdp != "" && *fsdp != false;
  if (used)
    key.took("with fsdp");
  else
    key.ignore("transformers reads it only beside fsdp");
}

/// A smoothed loss takes a mean over the vocabulary besides.
void read_label_smoothing(Key& key) {
  if (key.number() == 0) return key.ignore("off");
  key.warn("a smoothed loss keeps more of the logits than the estimate has");
}

void read_find_batch(Key& key) {
  if (key.flag())
    key.warn("the batch is made smaller until it fits: the estimate is for the one that is given");
  else
    key.ignore("off");
}

void read_lora_use(Key& key) {
  if (!key.flag()) return key.ignore("no adapters");
  make_lora(key.recipe());
  key.took("workload.method: lora");
}

/// LMFlow's (args.py): 4 bits of nf4, quantized twice, unless quant_bit says 8.
void read_lmflow_qlora(Key& key) {
  if (!key.flag()) return key.ignore("not in 4 bits");
  const Json* bits = key.other("quant_bit");
  const std::string form = bits != nullptr && *bits == 8 ? "int8" : "nf4_double";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

void read_compile_mode(Key& key) {
  if (key.other_is_true("torch_compile"))
    key.took("compile.mode");
  else
    key.ignore("not compiled");
}

void read_compile_backend(Key& key) {
  if (!key.other_is_true("torch_compile")) return key.ignore("not compiled");
  if (key.text() != "inductor") key.refuse("another compiler than Inductor", "inductor");
  key.ignore("Inductor is what is estimated");
}

void read_checkpointing_details(Key& key) {
  key.ignore("both of torch's checkpoints keep a block's input");
}

void read_kernel_list(Key& key) {
  if (!key.other_is_true("use_liger_kernel") || !key.value().is_object())
    return key.ignore("Liger is off");
  for (const auto& [name, on] : key.value().items())
    if (on.is_boolean()) key.recipe().liger[name] = on.get<bool>();
  key.took("kernels, beside what Liger patches unless told otherwise");
}

/// TRL's trainers run the whole step within its hooks (TRL 1.16, sft_trainer.py).
void read_activation_offloading(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.take("/activation_offloading", "streams");
}

/// transformers 5.23 has both names, and writes both.
void read_activation_checkpointing(Key& key) {
  if (key.other("gradient_checkpointing") != nullptr)
    return key.ignore("gradient_checkpointing says the same");
  read_checkpointing(key);
}

/// Of a program that has DeepSpeed's own arguments (deepspeed.add_config_arguments) it is a switch.
void read_deepspeed_switch(Key& key) {
  const bool is_switch = key.document().is_command() && key.value().is_boolean();
  if (is_switch && key.other("deepspeed_config") != nullptr)
    return key.ignore("deepspeed_config names what it turns on");
  if (is_switch && key.value() == true && key.recipe().asked_ds_config.empty())
    key.refuse("DeepSpeed is on, and its configuration is not in the arguments",
               "the ds_config; or --ds-config PATH");
  read_deepspeed(key);
}

constexpr std::array kTrainingRules{
    KeyRule{"per_device_train_batch_size", "/workload/micro_batch", as_integer},
    KeyRule{"per_gpu_train_batch_size", "/workload/micro_batch", as_integer},
    KeyRule{"gradient_accumulation_steps", "/workload/gradient_accumulation", as_integer},
    KeyRule{"bf16", "", read_bf16},
    KeyRule{"fp16", "", read_fp16},
    KeyRule{"optim", "", read_optimizer},
    KeyRule{"gradient_checkpointing", "", read_checkpointing},
    KeyRule{"gradient_checkpointing_kwargs", "", read_checkpointing_details},
    KeyRule{"activation_checkpointing", "", read_activation_checkpointing},
    KeyRule{"activation_checkpointing_kwargs", "", read_checkpointing_details},
    KeyRule{"activation_offloading", "", read_activation_offloading},
    KeyRule{"max_grad_norm", "", read_clipping},
    KeyRule{"torch_compile", "", read_compile},
    KeyRule{"torch_compile_mode", "", read_compile_mode},
    KeyRule{"torch_compile_backend", "", read_compile_backend},
    KeyRule{"use_liger_kernel", "", read_liger},
    KeyRule{"use_liger", "", read_liger},
    KeyRule{"liger_kernel_config", "", read_kernel_list},
    KeyRule{"deepspeed", "", read_deepspeed_switch},
    KeyRule{"deepspeed_config", "", read_deepspeed},
    KeyRule{"fsdp", "", read_trainer_fsdp},
    KeyRule{"fsdp_config", "", read_trainer_fsdp_config},
    KeyRule{"label_smoothing_factor", "", read_label_smoothing},
    KeyRule{"auto_find_batch_size", "", read_find_batch},
    KeyRule{"optim_target_modules", "", refuse_if_said},
    KeyRule{"parallelism_config", "", refuse_if_said},
};

constexpr std::string_view kOutside = "a step does not depend on it";
constexpr std::string_view kNotAStep = "evaluation and saving are no part of a training step";

const std::array kTrainingIgnored{
    IgnoredKeys{kOutside,
                {"output_dir",
                 "overwrite_output_dir",
                 "do_train",
                 "do_eval",
                 "do_predict",
                 "num_train_epochs",
                 "max_steps",
                 "learning_rate",
                 "lr_scheduler_type",
                 "lr_scheduler_kwargs",
                 "warmup_steps",
                 "warmup_ratio",
                 "warmup",
                 "weight_decay",
                 "adam_beta1",
                 "adam_beta2",
                 "adam_epsilon",
                 "optim_args",
                 "seed",
                 "data_seed",
                 "full_determinism",
                 "logging_*",
                 "log_level*",
                 "log_on_each_node",
                 "report_to",
                 "run_name",
                 "disable_tqdm",
                 "project",
                 "trackio_*",
                 "wandb_*",
                 "push_to_hub*",
                 "hub_*",
                 "resume_from_checkpoint",
                 "ignore_data_skip",
                 "remove_unused_columns",
                 "label_names",
                 "metric_for_best_model",
                 "greater_is_better",
                 "past_index",
                 "include_*",
                 "skip_memory_metrics",
                 "debug",
                 "local_rank",
                 "ddp_timeout",
                 "ddp_backend",
                 "tf32",
                 "use_cache",
                 "length_column_name",
                 "logging",
                 "average_tokens_across_devices",
                 "accelerator_config",
                 "split_batches",
                 "neftune_noise_alpha",
                 "lr_scheduler",
                 "log_completions",
                 "no_cuda",
                 "use_cpu",
                 "torch_empty_cache_steps",
                 "jit_mode_eval",
                 "use_legacy_prediction_loop",
                 "restore_callback_states_from_checkpoint",
                 "torch_dtype_kwargs",
                 "mp_parameters",
                 "environment",
                 "plot_loss",
                 "compute_accuracy",
                 "tpu_*",
                 "dispatch_batches",
                 "ray_scope",
                 "use_mps_device",
                 "half_precision_backend",
                 "fp16_backend",
                 "fp16_opt_level",
                 "bf16_full_eval",
                 "fp16_full_eval",

                 "chars_per_token",
                 "ddp_find_unused_parameters",
                 "ddp_broadcast_buffers",
                 "ddp_static_graph",
                 "ddp_bucket_cap_mb"}},
    IgnoredKeys{kNotAStep,
                {"eval_*", "evaluation_strategy", "per_device_eval_batch_size",
                 "per_gpu_eval_batch_size", "prediction_loss_only", "predict_with_generate",
                 "save_*", "load_best_model_at_end", "batch_eval_metrics", "generation_*",
                 "enable_jit_checkpoint", "eval_packing", "final_save"}},
    IgnoredKeys{"the loader runs on the host",
                {"dataloader_*",
                 "group_by_length",
                 "train_sampling_strategy",
                 "dataset*",
                 "datasets*",
                 "data_*",
                 "train_file",
                 "validation_file",
                 "test_file",
                 "max_train_samples",
                 "max_eval_samples",
                 "preprocessing_num_workers",
                 "overwrite_cache",
                 "streaming",
                 "shuffle*",
                 "text_column*",
                 "train_split",
                 "test_split",
                 "split",
                 "truncation_mode",
                 "interleave_probs",
                 "num_proc",
                 "columns",
                 "chat_template*",
                 "tokenizer*",
                 "use_fast_tokenizer",
                 "eos_token*",
                 "pad_token*",
                 "use_auth_token",
                 "token",
                 "cache_dir",
                 "model_revision",
                 "trust_remote_code",
                 "system_prompt",
                 "block_size_padding",
                 "hf_token",
                 "low_cpu_mem_usage",
                 "config_overrides",
                 "auto_insert_empty_system_msg",
                 "decontaminate*",
                 "mixture*",
                 "resize_token_embeddings",
                 "new_special_tokens",
                 "special_tokens",
                 "assistant_only_loss",
                 "completion_only_loss",
                 "skip_prepare_dataset",
                 "pad_to_multiple_of",
                 "callbacks",
                 "benchmarks"}},
};

std::string_view base_form(Key& key) {
  const auto is = [&](std::string_view name, std::string_view word) {
    const Json* value = key.other(name);
    return value != nullptr && *value == word;
  };
  const bool nested = key.other_is_true("use_bnb_nested_quant") ||
                      key.other_is_true("bnb_4bit_use_double_quant") ||
                      key.other_is_true("double_quantization");
  const bool fp4 = is("bnb_4bit_quant_type", "fp4") || is("quantization_type", "fp4");
  return fp4 ? (nested ? "fp4_double" : "fp4") : nested ? "nf4_double" : "nf4";
}

void read_storage(Key& key) {
  key.recipe().packed_in = key.text();
  key.ignore("taken with load_in_4bit");
}

constexpr std::array kLoraRules{
    KeyRule{"use_peft", "", read_lora_use},
    KeyRule{"use_lora", "", read_lora_use},
    KeyRule{"use_qlora", "", read_lmflow_qlora},
    KeyRule{"lora_r", "", read_lora_rank},
    KeyRule{"lora_rank", "", read_lora_rank},
    KeyRule{"lora_target_modules", "", read_lora_targets},
    KeyRule{"lora_dropout", "", read_lora_dropout},
    KeyRule{"use_rslora", "", read_rank_stabilized},
    KeyRule{"use_dora", "", read_dora},
    KeyRule{"lora_modules_to_save", "", read_saved_modules},
    KeyRule{"lora_target_parameters", "", read_target_parameters},
    KeyRule{"load_in_4bit", "", read_load_in_4bit},
    KeyRule{"load_in_8bit", "", read_load_in_8bit},
    KeyRule{"bnb_4bit_quant_storage", "", read_storage},
};

const std::array kLoraIgnored{
    IgnoredKeys{"it only scales what adapters add", {"lora_alpha"}},
    IgnoredKeys{"taken with load_in_4bit",
                {"use_bnb_nested_quant", "bnb_4bit_quant_type", "bnb_4bit_compute_dtype",
                 "bnb_4bit_use_double_quant"}},
    IgnoredKeys{"a step does not depend on it", {"lora_task_type", "lora_bias_none"}},
};

}  // namespace

void read_load_in_4bit(Key& key) {
  if (!key.flag()) return key.ignore("not in 4 bits");
  const std::string form(base_form(key));
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

void read_load_in_8bit(Key& key) {
  if (!key.flag()) return key.ignore("not in 8 bits");
  quantize_base(key, "int8");
  key.took("workload.lora.quantization: int8");
}

const KeyTable kTrainingKeys{kTrainingRules, kTrainingIgnored};
const KeyTable kLoraKeys{kLoraRules, kLoraIgnored};

void training_defaults(Recipe& recipe) {
  recipe.assume("/workload/micro_batch", 8, "TrainingArguments' default");
  if (!recipe.global_batch) recipe.set_default("/workload/gradient_accumulation", 1);
  recipe.set_default("/gradient_clipping", 1.0);
  recipe.assume("/optimizer", Json{{"name", "adamw"}, {"implementation", "fused"}},
                "TrainingArguments' default, adamw_torch_fused");
}

}  // namespace shardplan::importing
