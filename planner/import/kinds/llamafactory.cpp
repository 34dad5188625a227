// LLaMA-Factory's YAML (ff6d4d12e, August 2026: hparams, model/adapter.py, model/patcher.py).
#include <fmt/format.h>

#include <array>

#include "import/kinds/kind.h"
#include "import/kinds/llamafactory_v1.h"
#include "import/kinds/megatron.h"
#include "import/preference.h"
#include "import/training_keys.h"
#include "import/vocabulary.h"

namespace shardplan::importing::llamafactory {
namespace {

bool is_llamafactory(const Document& d) {
  if (d.program.starts_with("llamafactory-cli")) return true;
  if (d.program.find("infer") != d.program.npos) return false;  // scripts/vllm_infer.py
  if (has_any(d, {"finetuning_type"})) return true;
  if (has_any(d, {"train_dataset"}) && has_any(d, {"dist_config", "peft_config", "model_class"}))
    return true;
  return has_any(d, {"cutoff_len"}) || (has_all(d, {"stage", "template"}));
}

void read_stage(Key& key) {
  const std::string name = key.text();
  if (name == "sft" || name == "pt") {
    if (name == "pt") key.recipe().set_default("/workload/packing", true);
    return key.took("workload.kind: train");
  }
  if (name == "ppo")  // train/ppo/trainer.py: values from a head on the actor, of trl 0.9
    key.refuse("the stage 'ppo' is not estimated: its values come from the actor's own network",
               "pt, sft, rm, dpo or kto");
  // CustomDPOTrainer has ORPO's and SimPO's losses too, without a reference.
  const Json* loss = key.other("pref_loss");
  const bool odds = name == "dpo" && loss != nullptr && (*loss == "orpo" || *loss == "simpo");
  const std::string algorithm = algorithm_word(odds ? loss->get<std::string>() : name);
  if (algorithm.empty() || (name != "dpo" && name != "rm" && name != "kto"))
    key.refuse(fmt::format("the stage '{}' is not read", name), "pt, sft, rm, dpo or kto");
  key.recipe().take_algorithm(algorithm, key.origin());
  key.took("workload.algorithm: " + algorithm);
}

/// train/sft/trainer.py: a divergence from the model as it was, beside the loss of the labels.
/// create_ref_model makes no reference for LoRA, and the trainer calls what is then None.
void read_anchored_loss(Key& key) {
  if (!key.flag()) return key.ignore("off");
  const Json* type = key.other("finetuning_type");
  if (type == nullptr || *type != "full")
    key.refuse("LLaMA-Factory stops: without a reference \"'NoneType' object is not callable\"",
               "finetuning_type: full");
  key.recipe().take_algorithm("asft", key.origin());
  key.took("workload.algorithm: asft");
}

void read_type(Key& key) {
  const std::string name = key.text();
  if (name == "full") return key.took("workload.method: full");
  if (name == "freeze")
    return key.warn("only some layers are trained: the estimate is for all, which is more");
  if (name != "lora" && name != "oft")
    key.refuse(fmt::format("'{}' is not estimated", name), "full, lora, oft or freeze");
  make_lora(key.recipe());
  constexpr int kBlock = 32;  // finetuning_args.py, oft_block_size
  if (name == "oft" && !key.recipe().lora.contains("oft_block_size"))
    key.recipe().lora["oft_block_size"] = kBlock;
  key.took(name == "oft" ? "workload.lora.oft_block_size" : "workload.method: lora");
}

bool rotates(const Key& key) {
  const Json* type = key.other("finetuning_type");
  return type != nullptr && *type == "oft";
}

void read_oft_block(Key& key) {
  if (!rotates(key)) return key.ignore("finetuning_type is not oft");
  make_lora(key.recipe());
  key.recipe().lora["oft_block_size"] = key.integer(1);
  key.took(fmt::format("workload.lora.oft_block_size: {}", key.integer(1)));
}

void read_oft_target(Key& key) {
  if (!rotates(key)) return key.ignore("finetuning_type is not oft");
  read_lora_targets(key);
}

void read_target(Key& key) {
  const Json* type = key.other("finetuning_type");
  if (type != nullptr && (*type == "full" || *type == "oft")) return key.ignore("no LoRA");
  read_lora_targets(key);
}

void read_rank(Key& key) {
  const Json* type = key.other("finetuning_type");
  if (type != nullptr && *type == "full") return key.ignore("no adapters");
  read_lora_rank(key);
}

/// model_utils/quantization.py: nf4 with a second quantization unless told otherwise.
void read_bits(Key& key) {
  const std::int64_t bits = key.integer(1);
  const Json* method = key.other("quantization_method");
  const bool bnb = method == nullptr || *method == "bnb" || *method == "bitsandbytes";
  if (!bnb || (bits != 4 && bits != 8))
    key.refuse(fmt::format("{} bits of such a method are not estimated", bits),
               "4 or 8 with quantization_method bnb");
  const Json* twice = key.other("double_quantization");
  const Json* kind = key.other("quantization_type");
  const std::string base = kind != nullptr && *kind == "fp4" ? "fp4" : "nf4";
  const bool once = twice != nullptr && *twice == false;
  const std::string form = bits == 8 ? "int8" : once ? base : base + "_double";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

void read_no_checkpointing(Key& key) {
  key.take("/checkpointing", key.flag() ? "none" : "full");
}

void read_pure(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.recipe().weights = {"bf16", false};
  if (!key.recipe().bf16) key.recipe().bf16 = true;
  key.took("weights in bf16");
}

void read_muon(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.take("/optimizer", Json{{"name", "muon"}});
}

void read_packing(Key& key) {
  if (key.flag())
    key.take("/workload/packing", true);
  else
    key.ignore("off");
}

/// init_adapter casts all that trains, copies with adapters, unless the weights stay in bf16
/// (model/adapter.py, cast_trainable_params_to_fp32); DeepSpeed's engine casts them back.
void read_additional(Key& key) {
  read_saved_modules(key);
  const bool divided = key.other("deepspeed") != nullptr;
  const bool pure = key.other_is_true("pure_bf16") || key.other_is_true("use_badam");
  if (key.recipe().beside_lora.contains("modules_to_save") && !pure && !divided)
    key.recipe().beside_lora["saved_in_fp32"] = true;
}

/// model_utils/fp8_utils.py: torchao's linears with a scale for each tensor, or Transformer
/// Engine's.
void read_fp8(Key& key) {
  if (!key.flag()) return key.ignore("off");
  const Json* backend = key.other("fp8_backend");
  const bool engine = backend != nullptr && (*backend == "te" || *backend == "TE");
  take_fp8(key, engine ? "fp8-delayed" : "fp8-tensorwise",
           key.other_is_true("fp8_enable_fsdp_float8_all_gather"));
}

void read_predict(Key& key) {
  if (key.flag() && !key.other_is_true("do_train"))
    key.refuse("the file predicts, and trains nothing", "do_train: true");
  key.ignore("off");
}

constexpr std::array kRules{
    KeyRule{"model_name_or_path", "", read_model},
    KeyRule{"stage", "", read_stage},
    KeyRule{"finetuning_type", "", read_type},
    KeyRule{"cutoff_len", "/workload/sequence_length", as_integer},
    KeyRule{"packing", "", read_packing},
    KeyRule{"neat_packing", "", read_packing},
    KeyRule{"lora_rank", "", read_rank},
    KeyRule{"lora_target", "", read_target},
    KeyRule{"oft_block_size", "", read_oft_block},
    KeyRule{"oft_target", "", read_oft_target},
    KeyRule{"oft_rank", "", refuse_if_true},
    KeyRule{"module_dropout", "", warn_if_true},
    KeyRule{"quantization_bit", "", read_bits},
    KeyRule{"flash_attn", "", read_attention},
    KeyRule{"disable_gradient_checkpointing", "", read_no_checkpointing},
    KeyRule{"enable_liger_kernel", "", read_liger},
    KeyRule{"pure_bf16", "", read_pure},
    KeyRule{"use_muon", "", read_muon},
    KeyRule{"do_predict", "", read_predict},
    KeyRule{"additional_target", "", read_additional},
    KeyRule{"freeze_vision_tower", "", read_frozen_tower},
    KeyRule{"freeze_multi_modal_projector", "", read_frozen_projector},
    KeyRule{"freeze_language_model", "", refuse_if_true},
    KeyRule{"use_unsloth", "", refuse_if_true},
    KeyRule{"use_unsloth_gc", "", refuse_if_true},
    KeyRule{"use_galore", "", warn_if_larger},
    KeyRule{"use_apollo", "", warn_if_larger},
    KeyRule{"use_badam", "", warn_if_larger},
    KeyRule{"use_adam_mini", "", warn_if_larger},
    KeyRule{"use_llama_pro", "", warn_if_larger},
    KeyRule{"use_hyper_parallel", "", refuse_if_true},
    KeyRule{"use_kt", "", refuse_if_true},
    KeyRule{"fp8", "", read_fp8},
    KeyRule{"mixture_of_depths", "", refuse_if_said},
    KeyRule{"upcast_layernorm", "", warn_if_true},
    KeyRule{"upcast_lmhead_output", "", warn_if_true},
    KeyRule{"shift_attn", "", warn_if_true},
    KeyRule{"use_asft_loss", "", read_anchored_loss},
    KeyRule{"pissa_init", "", warn_if_true},
};

const std::array kIgnored{
    IgnoredKeys{"a step does not depend on it",
                {"template",
                 "trust_remote_code",
                 "use_dft_loss",
                 "use_eaft_loss",
                 "asft_alpha",
                 "eaft_alpha",
                 "pref_*",
                 "dpo_label_smoothing",
                 "kto_*",
                 "simpo_gamma",
                 "adapter_name_or_path",
                 "create_new_adapter",
                 "export_*",
                 "pissa_*",
                 "loraplus_*",
                 "galore_*",
                 "apollo_*",
                 "badam_*",
                 "freeze_trainable_*",
                 "freeze_extra_modules",
                 "use_v1_kernels",
                 "infer_*",
                 "vllm_*",
                 "swanlab_*",
                 "use_swanlab",
                 "ray_*",
                 "master_*",
                 "placement_strategy",
                 "resources_per_worker",
                 "enable_thinking",
                 "rope_scaling",
                 "kt_*",
                 "fp8_*",
                 "tokenized_path",
                 "early_stopping_steps",
                 "use_modelscope_hub",
                 "hf_hub_token",
                 "disable_shuffling",
                 "overwrite_output_dir",
                 "ld_alpha"}},
    IgnoredKeys{"the loader runs on the host",
                {"dataset",
                 "dataset_dir",
                 "eval_dataset",
                 "max_samples",
                 "val_size",
                 "mix_strategy",
                 "media_dir",
                 "buffer_size",
                 "train_on_prompt",
                 "mask_history",
                 "image_*",
                 "video_*",
                 "audio_*",
                 "tokenized_path",
                 "ignore_pad_token_for_loss",
                 "add_tokens",
                 "add_special_tokens",
                 "resize_vocab",
                 "new_special_tokens_config",
                 "init_special_tokens",
                 "crop_to_patches",
                 "use_fast_tokenizer"}},
    IgnoredKeys{"taken with quantization_bit",
                {"quantization_method", "double_quantization", "quantization_type"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

/// init_adapter: what is trained becomes fp32, the frozen base stays in the computing type, and
/// nothing is prepared as peft would (model/adapter.py, model_utils/checkpointing.py).
void read_loading(Recipe& recipe) {
  const bool bf16 = recipe.bf16.value_or(false);
  const bool fp16 = !bf16 && recipe.fp16.value_or(false);
  if (recipe.weights.dtype.empty())
    recipe.weights = {bf16 ? "bf16" : fp16 ? "fp16" : "", recipe.lora.is_null()};
  recipe.weights.left_by_zero3 = true;
  if (!recipe.lora.is_null() && recipe.lora.contains("quantization"))
    recipe.lora["prepare_kbit"] = false;
}

/// Its Megatron back ends pass Megatron-LM's own arguments on (hparams/training_args.py, mcore).
bool runs_megatron(const Document& d) {
  return has_any(d, {"use_mca", "use_megatron_bridge", "tensor_model_parallel_size",
                     "pipeline_model_parallel_size", "expert_model_parallel_size"});
}

void read_method(Key& key) {
  const std::string name = key.text();
  if (name != "full" && name != "lora")
    key.refuse(fmt::format("'{}' is not estimated under Megatron-LM", name), "full or lora");
  if (name == "lora") make_lora(key.recipe());
  key.took("workload.method: " + name);
}

constexpr std::array kMegatronRules{
    KeyRule{"model_name_or_path", "", read_model},
    KeyRule{"finetuning_type", "", read_method},
    KeyRule{"lora_rank", "", read_rank},
    KeyRule{"lora_target", "", read_target},
    KeyRule{"cutoff_len", "/workload/sequence_length", as_integer},
    KeyRule{"per_device_train_batch_size", "/workload/micro_batch", as_integer},
    KeyRule{"gradient_accumulation_steps", "/workload/gradient_accumulation", as_integer},
    KeyRule{"max_grad_norm", "", read_clipping},
    KeyRule{"packing", "", read_packing},
    KeyRule{"use_packed_sequences", "", read_packing},
    KeyRule{"freeze_vision_tower", "", read_frozen_tower},
    KeyRule{"freeze_multi_modal_projector", "", read_frozen_projector},
    KeyRule{"freeze_language_model", "", refuse_if_true},
};

const std::vector<IgnoredKeys>& ignored_under_megatron() {
  static const std::vector<IgnoredKeys> kAll = [] {
    std::vector<IgnoredKeys> all(kIgnored.begin(), kIgnored.end());
    all.insert(all.end(), kTrainingKeys.ignored.begin(), kTrainingKeys.ignored.end());
    all.push_back({"a step does not depend on it",
                   {"stage", "use_mca", "use_megatron_bridge", "mixed_precision", "extra_config",
                    "megatron_pretrained_checkpoint", "lora_alpha"}});
    return all;
  }();
  return kAll;
}

void read_megatron(const Document& d, Recipe& recipe) {
  const KeyTable others{kMegatronRules, ignored_under_megatron()};
  read_megatron_arguments(d, recipe, &others);
  recipe.assume("/workload/sequence_length", 2048, "LLaMA-Factory's default, cutoff_len");
  freeze_by_default(recipe);  // train/mca/workflow.py, _freeze_model_parameters
}

void read(const Document& d, Recipe& recipe) {
  if (runs_megatron(d)) return read_megatron(d, recipe);
  if (has_any(d, {"train_dataset", "dist_config", "model_class"}))
    return read_llamafactory_v1(d, recipe);
  read_keys(d, {&kOwn, &kTrainingKeys, &kLoraKeys}, recipe);
  if (!has_any(d, {"finetuning_type"})) {
    make_lora(recipe);
    recipe.note({.kind = Note::Kind::assumed,
                 .field = "workload.method: lora",
                 .reason = "LLaMA-Factory's default, finetuning_type"});
  }
  if (!recipe.lora.is_null()) {  // finetuning_args.py
    if (!recipe.lora.contains("rank")) recipe.lora["rank"] = 8;
    if (!recipe.lora.contains("targets")) recipe.lora["targets"] = Json{"all-linear"};
  }
  recipe.names_linears = true;
  read_loading(recipe);
  freeze_by_default(recipe);
  recipe.set_default("/trainer", "hf_trainer");
  recipe.assume("/workload/sequence_length", 2048, "LLaMA-Factory's default, cutoff_len");
  recipe.assume("/checkpointing", "full",
                "LLaMA-Factory checkpoints unless disable_gradient_checkpointing says not to");
  training_defaults(recipe);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"llamafactory", "a LLaMA-Factory configuration", is_llamafactory, read};

}  // namespace shardplan::importing::llamafactory
