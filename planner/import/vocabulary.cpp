#include "import/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/nearest.h"
#include "import/module_names.h"
#include "import/shipped_ds_configs.h"
#include "job/fields.h"
#include "json/document.h"
#include "load/ds_config/document.h"
#include "optimizers/trainer_words.h"

namespace shardplan::importing {
namespace {

/// Optimizers that keep less than one that is estimated, which then stands for them: one state
/// (RMSprop), projected ones (GaLore, APOLLO), states in 8 bits, of one block at a time (BAdam).
constexpr std::array kSmaller{
    OptimizerWord{"rmsprop", "adamw", "foreach"},
    OptimizerWord{"galore_adamw", "adamw", "foreach"},
    OptimizerWord{"galore_adafactor", "adamw", "foreach"},
    OptimizerWord{"galore_adamw_8bit", "adamw", "foreach"},
    OptimizerWord{"apollo_adamw", "adamw", "foreach"},
    OptimizerWord{"lion_8bit", "lion", ""},
    OptimizerWord{"paged_lion_32bit", "lion", ""},
    OptimizerWord{"paged_lion_8bit", "lion", ""},
    OptimizerWord{"rmsprop_bnb_8bit", "adamw", "foreach"},
    OptimizerWord{"rmsprop_bnb", "adamw", "foreach"},
    OptimizerWord{"ao_adamw_fp8", "adamw", "foreach"},
};

template <typename Words>
std::optional<Json> optimizer_in(const Words& words, std::string_view name) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const OptimizerWord& w) {
    return normalized(w.word) == normalized(name);
  });
  if (found == words.end()) return std::nullopt;
  Json optimizer{{"name", found->name}};
  if (!found->implementation.empty()) optimizer["implementation"] = found->implementation;
  // torchao's 8 bits are for embeddings too, which transformers takes from bitsandbytes.
  const bool torchao = found->name == "adamw_8bit" && found->word.find("bnb") == found->word.npos &&
                       found->word != "adamw_8bit";
  if (torchao) optimizer["embeddings_32bit"] = false;
  return optimizer;
}

std::string without_prefix(std::string_view name, std::string_view prefix) {
  return std::string(name.starts_with(prefix) ? name.substr(prefix.size()) : name);
}

}  // namespace

std::optional<Json> transformers_optimizer(std::string_view name) {
  return optimizer_in(kOptimizerWords, without_prefix(name, "OptimizerNames."));
}

std::vector<std::string> transformers_optimizers() {
  std::vector<std::string> names;
  for (const OptimizerWord& w : kOptimizerWords) names.emplace_back(w.word);
  return names;
}

std::string dtype_word(std::string_view name) {
  const std::string word = normalized(without_prefix(name, "torch."));
  for (const auto& [spelling, meaning] :
       {std::pair{"bfloat16", "bf16"}, std::pair{"bf16", "bf16"}, std::pair{"float16", "fp16"},
        std::pair{"fp16", "fp16"}, std::pair{"half", "fp16"}, std::pair{"float32", "fp32"},
        std::pair{"fp32", "fp32"}, std::pair{"float", "fp32"}})
    if (word == spelling) return meaning;
  return {};
}

void read_optimizer(Key& key) {
  const std::string name = key.text();
  if (const auto optimizer = transformers_optimizer(name))
    return key.take("/optimizer", *optimizer);
  if (const auto larger = optimizer_in(kSmaller, name))
    return key.estimate_larger("/optimizer", *larger);
  const std::vector<std::string> names = transformers_optimizers();
  key.refuse(fmt::format("the optimizer '{}' is not estimated", name),
             fmt::format("one of {}", fmt::join(names, ", ")),
             nearest(name, std::span<const std::string>(names)));
}

void read_attention(Key& key) {
  const std::string name = normalized(key.text());
  const bool eager = name == "eager" || name == "disabled" || name == "unfused";
  constexpr std::array kSecond{"flashattention2", "fa2", "flashattn", "flashattn2",
                               "kernelscommunity/flashattn2"};
  if (std::ranges::find(kSecond, name) != kSecond.end()) return take_flash_attn(key);
  key.take("/attention", eager ? "eager" : "sdpa");
}

void take_flash_attn(Key& key) {
  key.take("/attention", "sdpa");
  key.take("/sdpa_kernel", "flash_attn");
}

void assume_flash_attn(Recipe& recipe) {
  if (recipe.find("/attention") != nullptr) return;
  recipe.set_default("/attention", "sdpa");
  recipe.set_default("/sdpa_kernel", "flash_attn");
}

void read_weights_dtype(Key& key) {
  const std::string word = dtype_word(key.text());
  if (word.empty()) {
    if (key.text() != "auto")
      key.refuse(fmt::format("found '{}'", key.text()), "float32, bfloat16, float16 or auto");
    key.ignore("the checkpoint's own type, which the file does not say");
    return;
  }
  key.recipe().weights.dtype = word;
  key.took("weights in " + word);
}

void read_mixed_precision(Key& key) {
  const std::string word = key.value().is_boolean() ? "no" : normalized(key.text());
  if (word == "no") {
    key.ignore("no mixed precision");
    return;
  }
  if (word != "bf16" && word != "fp16")
    key.refuse(fmt::format("mixed precision '{}' is not read from such a file", key.text()),
               "bf16, fp16 or no; precision.linear of the job says fp8");
  (word == "bf16" ? key.recipe().bf16 : key.recipe().fp16) = true;
  key.took("mixed precision in " + word);
}

void read_bf16(Key& key) {
  const bool word = key.value().is_string() && (key.value() == "auto" || key.value() == "full");
  const bool on = word || key.flag();
  if (!key.recipe().bf16 || on) key.recipe().bf16 = on;
  key.took(on ? "computing in bf16" : "not in bf16");
}

void read_fp16(Key& key) {
  const bool on = (key.value().is_string() && key.value() == "auto") || key.flag();
  if (!key.recipe().fp16 || on) key.recipe().fp16 = on;
  key.took(on ? "computing in fp16" : "not in fp16");
}

void read_checkpointing(Key& key) {
  if (key.value().is_string() && key.text().starts_with("offload")) {
    key.take("/checkpointing", Json{{"policy", "full"}, {"offload", true}});
    return;
  }
  const Json* every = key.other("gradient_checkpointing_kwargs.every_n_layers");
  const bool offload = key.other_is_true("gradient_checkpointing_kwargs.offload");
  const bool some = every != nullptr && every->is_number_integer() && *every > 1;
  if ((some || offload) && key.flag()) {
    Json how{{"policy", some ? "blocks" : "full"}};
    if (some) how["every"] = *every;
    if (offload) how["offload"] = true;
    return key.take("/checkpointing", how);
  }
  const bool unsloth = key.value().is_string() && key.text() == "unsloth";
  if (unsloth) return key.estimate_larger("/checkpointing", "full");  // it keeps inputs on the host
  if (key.flag()) return key.take("/checkpointing", "full");
  key.recipe().set_default("/checkpointing", "none");  // an accelerate file may say otherwise
  key.took("checkpointing: none");
}

void read_clipping(Key& key) {
  const double norm = key.number();
  key.take("/gradient_clipping", norm < 0 ? 0.0 : norm);
}

void read_model(Key& key) {
  if (key.recipe().has_model) return key.ignore("--model says which");
  const std::string name = key.text();
  const std::string path = resolved_path(name, key.document().file);
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string config = fs::is_directory(path, error) ? path + "/config.json" : path;
  if (!path.empty() && fs::is_regular_file(config, error) && config.ends_with(".json")) {
    key.take("/model", read_json_file(config));
    return;
  }
  key.take("/model", name);
}

void read_compile(Key& key) {
  if (!key.value().is_boolean() && key.value() == "auto") {
    key.ignore("auto is off where it was not asked for");
    return;
  }
  const Json* mode = key.other("torch_compile_mode");
  if (!key.flag()) {
    key.ignore("not compiled");
  } else if (mode != nullptr && mode->is_string()) {
    key.take("/compile", Json{{"mode", *mode}});
  } else {
    key.take("/compile", true);
  }
}

void read_liger(Key& key) {
  if (key.flag())
    key.take("/kernels", "liger");
  else
    key.ignore("PyTorch's own kernels");
}

Json ds_config_of_trainer(const std::string& path) {
  return read_ds_document(read_text_file(path), path, AutoResolver::hf_trainer).json;
}

void attach_ds_config(Key& key, const Json& config, const std::string& file) {
  if (!config.is_object()) key.refuse("the ds_config is no object", "a DeepSpeed configuration");
  Recipe& recipe = key.recipe();
  recipe.set("/framework", Json{{"name", "deepspeed"}, {"ds_config", config}}, key.origin());
  if (!file.empty()) recipe.kinds.emplace_back(file, "ds_config");
  key.took("framework: deepspeed" + (file.empty() ? "" : " with " + file));
}

void read_deepspeed(Key& key) {
  if (key.value().is_object()) return attach_ds_config(key, key.value(), "");
  const std::string name = key.text();
  if (name.empty() || name == "false") return key.ignore("no DeepSpeed");
  const std::string& asked = key.recipe().asked_ds_config;
  const std::string path = asked.empty() ? resolved_path(name, key.document().file) : asked;
  if (!path.empty()) return attach_ds_config(key, ds_config_of_trainer(path), path);
  const auto shipped = shipped_ds_config(name);
  if (!shipped)
    key.refuse(fmt::format("no file '{}' beside this one, in a folder above or in the working "
                           "directory",
                           name),
               "the ds_config; or --ds-config PATH");
  key.recipe().note(
      {.kind = Note::Kind::assumed,
       .file = key.origin().file,
       .key = key.path(),
       .field = "framework.ds_config",
       .reason = fmt::format("'{}' is not here: taken as {} ships it", name, shipped->trainer)});
  attach_ds_config(key, shipped->config, "");
}

void make_lora(Recipe& recipe) {
  if (recipe.lora.is_null()) recipe.lora = Json::object();
}

void quantize_base(Recipe& recipe, std::string_view form) {
  make_lora(recipe);
  recipe.lora["quantization"] = form;
}

void quantize_base(Key& key, std::string_view form) {
  quantize_base(key.recipe(), form);
  key.recipe().origins["/workload/lora/quantization"] = key.origin();
}

void read_frozen_tower(Key& key) {
  key.recipe().frozen_tower = key.flag();
  key.took("workload.frozen, if the model reads images");
}

void read_frozen_projector(Key& key) {
  key.recipe().frozen_projector = key.flag();
  key.took("workload.frozen, if the model reads images");
}

void freeze_by_default(Recipe& recipe) {
  recipe.frozen_tower = recipe.frozen_tower.value_or(true);
  recipe.frozen_projector = recipe.frozen_projector.value_or(true);
}

void read_lora_rank(Key& key) {
  make_lora(key.recipe());
  key.recipe().lora["rank"] = key.integer(1);
  key.took(fmt::format("workload.lora.rank: {}", key.integer(1)));
}

namespace {

std::vector<std::string> target_words(Key& key) {
  const bool expression =
      key.value().is_string() && key.text().find_first_of("(|\\") != std::string::npos;
  return expression ? std::vector{key.text()} : key.list();
}

}  // namespace

/// Modules by the last part of their names, which is what peft compares. Of an expression over
/// whole names the last part counts: models are estimated without what lies beside the layers.
void read_lora_targets(Key& key) {
  Json targets = Json::array();
  for (const std::string& word : target_words(key)) {
    if (word == "all-linear" || word == "all_linear" || word == "all" || word == "*" ||
        word == "*_proj" || word == "*proj") {
      targets = Json{"all-linear"};
      break;
    }
    const std::vector<std::string> names = last_names(word);
    if (names.empty())
      key.refuse(fmt::format("'{}' is an expression over module names", word),
                 "names of modules: q_proj, v_proj; or --lora-targets");
    for (const std::string& name : names)
      if (std::find(targets.begin(), targets.end(), name) == targets.end()) targets.push_back(name);
  }
  if (targets.empty()) return key.ignore("empty");
  make_lora(key.recipe());
  key.recipe().lora["targets"] = targets;
  key.recipe().origins["/workload/lora/targets"] = key.origin();
  key.took(fmt::format("workload.lora.targets: {}", targets.dump()));
}

void read_rank_stabilized(Key& key) {
  if (!key.flag()) return key.ignore("off");
  make_lora(key.recipe());
  key.recipe().lora["rank_stabilized"] = true;
  key.took("workload.lora.rank_stabilized: true");
}

void read_lora_dropout(Key& key) {
  key.recipe().beside_lora["dropout"] = key.number();
  key.took(fmt::format("workload.lora.dropout: {}", key.number()));
}

void read_target_parameters(Key& key) {
  const std::vector<std::string> names = key.list();
  if (names.empty()) return key.ignore("empty");
  key.recipe().beside_lora["target_parameters"] = names;
  key.recipe().origins["/workload/lora/target_parameters"] = key.origin();
  key.took(fmt::format("workload.lora.target_parameters: {}", fmt::join(names, ", ")));
}

void take_fp8(Key& key, const std::string& recipe, bool gathers) {
  key.recipe().linear = recipe;
  // accelerate finds the scales behind the optimizer's step (accelerator.py of 1.15).
  if (gathers) key.recipe().float8_gather = "precomputed";
  key.took("precision.linear: " + recipe);
}

/// Trainers ask for it whatever shards the model, and only FSDP2 heeds it; casts behind a copy from
/// the host are not estimated, and without them there is more.
void gather_in_8_bits(Recipe& recipe, std::string_view framework) {
  const bool heeds = framework == "fsdp2" && recipe.find("/framework/cpu_offload") == nullptr;
  if (heeds && !recipe.float8_gather.empty())
    set_field(recipe.job, "/framework/float8_all_gather", recipe.float8_gather);
}

void read_dora(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.recipe().beside_lora["dora"] = true;
  key.took("workload.lora.dora: true");
}

void read_saved_modules(Key& key) {
  const std::vector<std::string> names = key.list();
  if (names.empty()) return key.ignore("empty");
  key.recipe().beside_lora["modules_to_save"] = names;
  key.recipe().origins["/workload/lora/modules_to_save"] = key.origin();
  key.took(fmt::format("workload.lora.modules_to_save: {}", fmt::join(names, ", ")));
}

void refuse_if_true(Key& key) {
  const bool off = key.value().is_boolean()  ? !key.value().get<bool>()
                   : key.value().is_number() ? key.value() == 0
                                             : key.value() == "" || key.value() == "false";
  if (off) return key.ignore("off");
  key.refuse("is not estimated", "leave it out to see the rest; what it changes is then missing");
}

void refuse_if_said(Key& key) {
  const Json& value = key.value();
  if ((value.is_array() || value.is_object() || value.is_string()) && value.empty())
    return key.ignore("empty");
  key.refuse("is not estimated", "leave it out to see the rest; what it changes is then missing");
}

void warn_if_larger(Key& key) {
  const bool off = key.value().is_boolean() ? !key.value().get<bool>() : key.value() == 0;
  if (off) return key.ignore("off");
  key.warn("takes less than what is estimated in its place: all parameters with AdamW");
}

void warn_if_true(Key& key) {
  const bool off = key.value().is_boolean() ? !key.value().get<bool>() : key.value() == 0;
  if (off) return key.ignore("off");
  key.warn("changes memory or time a little, and is not counted");
}

}  // namespace shardplan::importing
