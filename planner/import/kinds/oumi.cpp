// oumi's YAML of `oumi train` (d8ed0777, August 2026: core/configs/training_config.py and params/,
// builders/models.py, train.py).
#include "import/kinds/oumi.h"

#include <fmt/format.h>

#include <array>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "import/kinds/kind.h"
#include "import/preference.h"
#include "import/training_keys.h"
#include "import/vocabulary.h"

namespace shardplan::importing::oumi {
namespace {

bool is_oumi(const Document& d) {
  if (d.is_command()) return d.program == "oumi train";
  return has_all(d, {"model.model_name"}) && has_any(d, {"training", "data.train"});
}

/// An enumerated value by its name or its text: "TRL_SFT" is "trl_sft".
std::string trainer_type(const Document& flat) {
  const Json* type = value_below(flat.value, "trainer_type");
  return type != nullptr && type->is_string() ? lower(type->get<std::string>()) : "hf";
}

void read_trainer_type(Key& key) {
  const std::string type = lower(key.text());
  for (const auto& [name, algorithm] :
       {std::pair{"trl_dpo", "dpo"}, std::pair{"trl_kto", "kto"}, std::pair{"trl_grpo", "grpo"}})
    if (type == name) {
      key.recipe().take_algorithm(algorithm, key.origin());
      return key.took(fmt::format("workload.algorithm: {}", algorithm));
    }
  if (type == "trl_sft") return key.took("trainer: trl");
  if (type == "hf") return key.took("trainer: hf_trainer");
  key.refuse(fmt::format("'{}' is not estimated", key.text()),
             "HF, TRL_SFT, TRL_DPO, TRL_KTO or TRL_GRPO; of verl its own file or command");
}

void read_half(Key& key) {
  const std::string word = lower(key.text());
  if (word == "none") return key.ignore("no mixed precision");
  if (word != "bf16" && word != "fp16")
    key.refuse(fmt::format("found '{}'", key.text()), "NONE, BF16 or FP16");
  (word == "bf16" ? key.recipe().bf16 : key.recipe().fp16) = true;
  key.took("mixed precision in " + word);
}

void read_blocks(Key& key) {
  if (key.other_is_true("use_deterministic")) return key.ignore("use_deterministic turns it off");
  read_checkpointing(key);
}

/// TrainingConfig.__post_init__ lays model_max_length over max_length.
void read_kwargs_length(Key& key) {
  if (key.other("model_max_length") != nullptr) return key.ignore("model.model_max_length counts");
  key.take("/workload/sequence_length", key.integer(1));
}

/// GRPO has lengths of its own.
void read_model_length(Key& key) {
  if (trainer_type(key.document()) == "trl_grpo")
    return key.ignore("grpo.max_prompt_length and max_completion_length count");
  key.take("/workload/sequence_length", key.integer(1));
}

/// PeftParams.to_bits_and_bytes(): fp4 where nothing says nf4.
void read_quantized(Key& key) {
  if (!key.flag() || !key.other_is_true("use_peft")) return key.ignore("not quantized");
  const Json* bits = key.other("q_lora_bits");
  const Json* type = key.other("bnb_4bit_quant_type");
  std::string form = type == nullptr ? "fp4" : lower(type->get<std::string>());
  if (form != "fp4" && form != "nf4")
    key.refuse(fmt::format("bnb_4bit_quant_type: found '{}'", form), "nf4 or fp4");
  if (key.other_is_true("use_bnb_nested_quant")) form += "_double";
  if (bits != nullptr && *bits == 8) form = "int8";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

/// Of a model that reads images, the parts before the text; nobody freezes a text's layers.
void read_frozen(Key& key) {
  for (const std::string& name : key.list()) {
    const bool projector = name.find("projector") != name.npos ||
                           name.find("connector") != name.npos || name.find("merger") != name.npos;
    const bool tower = name.find("visi") != name.npos || name.find("visual") != name.npos ||
                       name.find("image") != name.npos || name.find("img") != name.npos;
    if (projector) key.recipe().frozen_projector = true;
    if (tower && !projector) key.recipe().frozen_tower = true;
    if (!tower && !projector)
      key.warn(fmt::format("'{}' is estimated as trained, which is more", name));
  }
  if (!key.said()) key.took("workload.frozen, if the model reads images");
}

void read_overrides(Key& key) {
  if (!key.value().is_object()) key.refuse("is no mapping", "keys of the model's configuration");
  for (const auto& [name, value] : key.value().items()) {
    if (name == "disable_dropout") {
      if (value == true)
        key.warn("dropout that the model's configuration has is estimated, which is more");
      continue;
    }
    if (name == "rope_scaling" || name == "max_position_embeddings" || name == "use_cache")
      continue;
    const Json* method = value_below(value, "quant_method");
    if (name == "quantization_config" && method != nullptr && *method == "mxfp4") continue;
    key.refuse(fmt::format("'{}' changes the network in a way that is not read here", name),
               "--model with a config.json that has it, and no model_kwargs");
  }
  if (!key.said()) key.ignore("neither memory nor time of a step depends on it");
}

void read_scratch(Key& key) {
  key.ignore("weights take the same, loaded or not");
}

/// vLLM within TRL's trainer (grpo_params.py).
void read_engine(Key& key) {
  read_vllm_engine(key, {.utilization = 0.9, .batched_tokens = 4096});
}

void read_left_out(Key& key) {
  if (key.value().empty()) return key.ignore("empty");
  key.warn("what it leaves out of lora_target_modules is estimated with adapters, which is more");
}

void read_bias(Key& key) {
  if (lower(key.text()) == "none") return key.ignore("no bias is trained");
  key.warn("biases are estimated as frozen; they are few");
}

void read_adapter_model(Key& key) {
  key.refuse("a model with adapters on it is not estimated", "the base, and training.use_peft");
}

constexpr std::array kRules{
    KeyRule{"trainer_type", "", read_trainer_type},
    KeyRule{"model_name", "", read_model},
    KeyRule{"model_max_length", "", read_model_length},
    KeyRule{"torch_dtype_str", "", read_weights_dtype},
    KeyRule{"attn_implementation", "", read_attention},
    KeyRule{"enable_liger_kernel", "", read_liger},
    KeyRule{"load_pretrained_weights", "", read_scratch},
    KeyRule{"adapter_model", "", read_adapter_model},
    KeyRule{"freeze_layers", "", read_frozen},
    KeyRule{"model_kwargs", "", read_overrides},
    KeyRule{"model.compile", "", refuse_if_true},
    KeyRule{"compile", "", read_compile},
    KeyRule{"optimizer", "", read_optimizer},
    KeyRule{"mixed_precision_dtype", "", read_half},
    KeyRule{"enable_gradient_checkpointing", "", read_blocks},
    KeyRule{"data.train.pack", "/workload/packing", as_flag},
    KeyRule{"fsdp", "", read_fsdp},
    KeyRule{"deepspeed", "", read_deepspeed},
    KeyRule{"q_lora", "", read_quantized},
    KeyRule{"lora_exclude_modules", "", read_left_out},
    KeyRule{"llm_int8_skip_modules", "", refuse_if_said},
    KeyRule{"lora_bias", "", read_bias},
    // trainer_kwargs and grpo, which go to TRL as they are.
    KeyRule{"max_length", "", read_kwargs_length},
    KeyRule{"max_seq_length", "", read_kwargs_length},
    KeyRule{"packing", "/workload/packing", as_flag},
    KeyRule{"beta", "", read_beta},
    KeyRule{"precompute_ref_log_probs", "", read_precomputed},
    KeyRule{"max_prompt_length", "", read_prompt_tokens},
    KeyRule{"max_completion_length", "", read_new_tokens},
    KeyRule{"num_generations", "", read_completions},
    KeyRule{"use_vllm", "", read_engine},
    KeyRule{"verl_config_overrides", "", refuse_if_said},
};

const std::array kIgnored{
    IgnoredKeys{"taken with the rest of its block",
                {"q_lora_bits", "bnb_4bit_quant_type", "use_bnb_nested_quant", "vllm_*",
                 "use_deterministic"}},
    IgnoredKeys{"a step does not depend on it",
                {"model_revision",
                 "tokenizer_*",
                 "processor_kwargs",
                 "shard_for_eval",
                 "device_map",
                 "tool_call_parser",
                 "enable_wandb",
                 "enable_mlflow",
                 "enable_tensorboard",
                 "empty_device_cache_steps",
                 "reward_functions",
                 "reward_function_kwargs",
                 "metrics_function",
                 "nccl_default_timeout_minutes",
                 "profiler",
                 "telemetry",
                 "try_resume_from_last_checkpoint",
                 "sgd_momentum",
                 "lora_init_weights",
                 "peft_save_mode",
                 "dep_log_level",
                 "log_*",
                 "label_ignore_index",
                 "temperature",
                 "epsilon",
                 "repetition_penalty",
                 "rollout_function",
                 "model_init_kwargs",
                 "loss_type",
                 "gkd",
                 "gold",
                 "telemetry_dir",
                 "environment",
                 "c",
                 "config"}},
    IgnoredKeys{"the loader runs on the host", {"data.*", "dataset_*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

/// PeftParams counts only under training.use_peft.
void settle_adapters(Recipe& recipe, const Document& flat) {
  const Json* use = value_below(flat.value, "use_peft");
  if (use == nullptr || *use != true) {
    recipe.lora = Json();
    recipe.beside_lora = Json::object();
    recipe.packed_in.clear();
    return;
  }
  if (!recipe.lora.contains("rank")) recipe.lora["rank"] = 8;  // peft_params.py, lora_r
  // builders/models.py, build_peft_model, whatever divides the model.
  if (recipe.lora.contains("quantization")) recipe.lora["prepare_kbit"] = true;
}

void read(const Document& d, Recipe& recipe) {
  if (d.is_command())
    throw InputError({.file = d.file,
                      .key = "--config",
                      .message = "names no configuration",
                      .expected = "oumi train -c train.yaml"});
  const Document flat = flattened(d);
  // TrainingParams.to_hf() says both, whatever TRL's own defaults are.
  recipe.bf16 = recipe.fp16 = false;
  read_keys(flat, {&kOwn, &kTrainingKeys, &kLoraKeys}, recipe);
  settle_adapters(recipe, flat);
  const std::string type = trainer_type(flat);
  recipe.set_default("/trainer", type == "hf" ? "hf_trainer" : "trl");
  recipe.assume("/checkpointing", "none", "oumi's default, enable_gradient_checkpointing");
  recipe.assume("/optimizer", Json{{"name", "adamw"}, {"implementation", "foreach"}},
                "oumi's default, adamw_torch");
  training_defaults(recipe);
  if (type == "trl_grpo") {
    if (!recipe.rlhf.contains("prompt_length")) recipe.rlhf["prompt_length"] = 512;
    if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 512;
  } else {
    if (type != "hf")
      recipe.assume("/workload/sequence_length", 1024, "TRL's max_length");
    else if (recipe.find("/workload/sequence_length") == nullptr)
      throw InputError({.file = d.file,
                        .key = "model.model_max_length",
                        .message = "missing: samples are as long as the tokenizer allows",
                        .expected = "the length to which they are cut"});
    recipe.rlhf.erase("prompt_length");
    recipe.rlhf.erase("new_tokens");
  }
  if (!recipe.algorithm.empty()) settle_reference(recipe, 0);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"oumi", "a configuration of oumi", is_oumi, read};

}  // namespace shardplan::importing::oumi
