#include "import/program_keys.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "import/training_keys.h"
#include "import/vocabulary.h"

namespace shardplan::importing {
namespace {

/// Adapters at all linear layers of the text model, unless the file names modules.
void adapt_all(Key& key) {
  make_lora(key.recipe());
  if (key.other("lora_target_modules") == nullptr) key.recipe().lora["targets"] = {"all-linear"};
}

/// LLaVA (llava/train/train.py, find_all_linear_names), Qwen-VL-Series-Finetune (train_sft.py), and
/// full_finetune of QLoRA's script (qlora.py), which says the opposite.
void read_adapters(Key& key) {
  if (key.flag() == (key.path() == "full_finetune")) return key.ignore("no adapters");
  adapt_all(key);
  key.took("workload.method: lora");
}

/// InternVL (internvl_chat_finetune.py): the rank, 0 for none.
void read_text_adapters(Key& key) {
  const std::int64_t rank = key.integer();
  if (rank == 0) return key.ignore("no adapters");
  adapt_all(key);
  key.recipe().lora["rank"] = rank;
  key.took(fmt::format("workload.lora.rank: {}", rank));
}

/// LLaVA's and QLoRA's script: double_quant and quant_type are nf4, twice, unless they say else.
void read_bits(Key& key) {
  const std::int64_t bits = key.integer(1);
  if (bits != 4 && bits != 8) return key.ignore("the base as it is");
  const Json* once = key.other("double_quant");
  const Json* type = key.other("quant_type");
  const bool twice = once == nullptr || key.other_is_true("double_quant") || *once == 1;
  std::string form = type != nullptr && *type == "fp4" ? "fp4" : "nf4";
  if (twice) form += "_double";
  if (bits == 8) form = "int8";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

/// Qwen's finetune.py: a base that GPTQ has packed in 4 bits.
void read_packed_base(Key& key) {
  if (!key.flag()) return key.ignore("not in 4 bits");
  quantize_base(key, "nf4");
  key.warn("GPTQ in 4 bits is estimated as nf4");
}

void take_firefly_mode(Key& key, std::string_view mode) {
  if (mode == "full") return key.took("workload.method: full");
  if (mode != "lora" && mode != "qlora")
    key.refuse(fmt::format("'{}' is not estimated", mode), "full, lora or qlora");
  constexpr int kRank = 64;  // component/argument.py
  adapt_all(key);
  if (key.other("lora_rank") == nullptr) key.recipe().lora["rank"] = kRank;
  if (mode == "qlora") quantize_base(key, "nf4_double");
  key.took(mode == "qlora" ? "workload.lora.quantization: nf4_double" : "workload.method: lora");
}

/// Firefly (train.py).
void read_train_mode(Key& key) {
  take_firefly_mode(key, key.text());
}

/// Firefly's files say which template; its mode is qlora where they do not say one.
void read_template(Key& key) {
  if (key.other("train_mode") != nullptr || key.other("train_file") == nullptr)
    return key.ignore("a step does not depend on it");
  take_firefly_mode(key, "qlora");
}

void read_unsloth(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("Unsloth's kernels keep less than the estimate has");
}

/// LISA, Spectrum: some layers at a time.
void read_some_layers(Key& key) {
  if (key.value() == false || key.value() == 0) return key.ignore("off");
  key.warn("only some layers are trained: the estimate is for all, which is more");
}

/// What does not train of the text model, where nothing is said of adapters.
void read_frozen_text(Key& key) {
  const bool frozen = key.flag() != key.path().starts_with("tune_");
  if (!frozen) return key.ignore("the text model trains");
  if (key.other_is_true("lora_enable") || key.other("use_llm_lora") != nullptr)
    return key.ignore("adapters train beside it");
  key.warn("the text model does not train: the estimate is for all, which is more");
}

/// InternVL's backbone is the tower, LLaVA's the text model.
void read_backbone(Key& key) {
  if (key.other("freeze_mlp") != nullptr) return read_frozen_tower(key);
  read_frozen_text(key);
}

void read_tuned_tower(Key& key) {
  key.recipe().frozen_tower = !key.flag();
  key.took(key.flag() ? "a tower that trains" : "a frozen tower");
}

void read_tuned_projector(Key& key) {
  key.recipe().frozen_projector = !key.flag();
  key.took(key.flag() ? "a projector that trains" : "a frozen projector");
}

/// LLaVA's first stage.
void read_projector_alone(Key& key) {
  if (!key.flag()) return key.ignore("more than the projector trains");
  key.warn("only the projector trains: the estimate is for all, which is more");
}

void read_tower_adapters(Key& key) {
  if (key.value() == false || key.value() == 0 || key.value() == "False")
    return key.ignore("no adapters in the tower");
  key.warn("adapters in the tower of images are not counted");
}

void read_image_size(Key& key) {
  key.warn("how many tokens an image takes follows from it: --image-tokens says it");
}

/// peft's examples (examples/sft/train.py): what read_load_in_4bit reads by other names.
void read_4bit_base(Key& key) {
  if (!key.flag()) return key.ignore("not in 4 bits");
  const Json* type = key.other("bnb_4bit_quant_type");
  std::string form = type != nullptr && *type == "fp4" ? "fp4" : "nf4";
  if (key.other_is_true("use_nested_quant")) form += "_double";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

void read_packed_storage(Key& key) {
  key.recipe().packed_in = key.text();
  key.ignore("taken with use_4bit_quantization");
}

void refuse_images(Key& key) {
  key.refuse("a network that draws images is not estimated", "a language model's arguments");
}

void refuse_groups(Key& key) {
  key.refuse("an embedding model or reranker trains on groups of texts, which is not estimated",
             "a language model's arguments");
}

constexpr std::array kProgramRules{
    KeyRule{"lora_enable", "", read_adapters},
    KeyRule{"peft_enable", "", read_adapters},
    KeyRule{"full_finetune", "", read_adapters},
    KeyRule{"use_llm_lora", "", read_text_adapters},
    KeyRule{"bits", "", read_bits},
    KeyRule{"q_lora", "", read_packed_base},
    KeyRule{"train_mode", "", read_train_mode},
    KeyRule{"grad_checkpoint", "", read_checkpointing},
    KeyRule{"template_name", "", read_template},
    KeyRule{"use_unsloth", "", read_unsloth},
    KeyRule{"use_lisa", "", read_some_layers},
    KeyRule{"spectrum_config_path", "", read_some_layers},
    KeyRule{"freeze_vision_tower", "", read_frozen_tower},
    KeyRule{"freeze_vision_modules", "", read_frozen_tower},
    KeyRule{"freeze_merger", "", read_frozen_projector},
    KeyRule{"freeze_mlp", "", read_frozen_projector},
    KeyRule{"freeze_llm", "", read_frozen_text},
    KeyRule{"freeze_backbone", "", read_backbone},
    KeyRule{"tune_mm_llm", "", read_frozen_text},
    KeyRule{"tune_mm_vision", "", read_tuned_tower},
    KeyRule{"tune_vision_tower", "", read_tuned_tower},
    KeyRule{"tune_mm_mlp", "", read_tuned_projector},
    KeyRule{"tune_mm_mlp_adapter", "", read_projector_alone},
    KeyRule{"vision_lora", "", read_tower_adapters},
    KeyRule{"use_backbone_lora", "", read_tower_adapters},
    KeyRule{"image_max_pixels", "", read_image_size},
    KeyRule{"max_pixels", "", read_image_size},
    KeyRule{"max_dynamic_patch", "", read_image_size},
    KeyRule{"use_peft_lora", "", read_adapters},
    KeyRule{"use_4bit_quantization", "", read_4bit_base},
    KeyRule{"use_8bit_quantization", "", read_load_in_8bit},
    KeyRule{"bnb_4bit_quant_storage_dtype", "", read_packed_storage},
    KeyRule{"train_group_size", "", refuse_groups},
    KeyRule{"instance_data_dir", "", refuse_images},
    KeyRule{"controlnet_model_name_or_path", "", refuse_images},
};

const std::array kProgramIgnored{
    IgnoredKeys{"taken with bits, use_qlora or use_4bit_quantization",
                {"double_quant", "quant_type", "quant_bit", "use_nested_quant",
                 "lora_namespan_exclude", "num_lora_modules", "max_memory_MB"}},
    IgnoredKeys{"attention is fused either way",
                {"use_flash_attn", "use_flash_attention", "disable_flash_attn2"}},
    IgnoredKeys{"the loader runs on the host",
                {"image_folder", "lazy_preprocess", "conversation_template", "conv_style",
                 "disable_group_texts", "validation_split_percentage", "tokenize_num_workers",
                 "use_slow_tokenizer", "add_bos", "meta_path", "image_aspect_ratio",
                 "image_min_pixels", "mask_user_tokens"}},
    IgnoredKeys{"a step does not depend on it",
                {"task_type", "num_epochs", "with_tracking", "checkpointing_steps",
                 "keep_last_n_checkpoints", "hf_metadata_dataset", "merger_lr", "vision_lr",
                 "vision_tower_lr", "connector_lr", "language_model_lr", "mm_projector_lr",
                 "gamma_beta_ratio", "add_special_tokens", "append_concat_token", "splits",
                 "arch_type", "sanity_check", "dpo_loss"}},
};

}  // namespace

const KeyTable kProgramKeys{kProgramRules, kProgramIgnored};

bool trains_all(const Document& document) {
  const Json* mode = value_below(document.value, "train_mode");
  const Json* full = value_below(document.value, "full_finetune");
  return (mode != nullptr && *mode == "full") ||
         (full != nullptr && (*full == true || *full == "True"));
}

}  // namespace shardplan::importing
