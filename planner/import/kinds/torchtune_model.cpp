#include "import/kinds/torchtune_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "import/vocabulary.h"
#include "load/catalog.h"

namespace shardplan::importing::torchtune {
namespace {

/// How torchtune's builders (torchtune/models, bd2a0fc7c) begin and the catalogue's names do; what
/// follows is a size, written alike but for the marks between numbers.
struct Family {
  std::string_view builder, name, end = "";
};
constexpr std::array kFamilies{Family{"llama3_2_vision_", "llama-3.2-", "-vision"},
                               Family{"llama3_1_", "llama-3.1-"},
                               Family{"llama3_2_", "llama-3.2-"},
                               Family{"llama3_3_", "llama-3.1-"},  // the same network
                               Family{"llama3_", "llama-3-"},
                               Family{"llama2_", "llama-2-"},
                               Family{"llama4_", "llama-4-"},
                               Family{"code_llama2_", "codellama-"},
                               Family{"gemma2_", "gemma-2-"},
                               Family{"gemma_", "gemma-"},
                               Family{"qwen2_5_", "qwen2.5-"},
                               Family{"qwen2_", "qwen2-"},
                               Family{"qwen3_", "qwen3-"}};
/// Names of their own. torchtune's Mistral has no window.
constexpr std::array kOthers{std::pair{"mistral_7b", "mistral-7b-instruct-v0.2"},
                             std::pair{"phi3_mini", "phi-3-mini-4k-instruct"},
                             std::pair{"phi4_14b", "phi-4"}};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// "0_5b" is 0.5b, "17b_16e" is 17b-16e.
std::string size_of_builder(std::string_view words) {
  std::string size(words);
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (size[i] != '_') continue;
    const bool inside =
        i > 0 && i + 1 < size.size() && is_digit(size[i - 1]) && is_digit(size[i + 1]);
    size[i] = inside ? '.' : '-';
  }
  for (const std::string_view end : {"-instruct", "-base"})
    if (size.ends_with(end)) size.resize(size.size() - end.size());
  return size;
}

/// The catalogue's name for a builder without "lora_"; nothing for one that it has not.
std::optional<std::string> network_of(std::string_view builder) {
  for (const auto& [own, name] : kOthers)
    if (builder == own) return name;
  for (const Family& f : kFamilies) {
    if (!builder.starts_with(f.builder)) continue;
    std::string name =
        fmt::format("{}{}{}", f.name, size_of_builder(builder.substr(f.builder.size())), f.end);
    if (find_model(name)) return name;
    return std::nullopt;
  }
  return std::nullopt;
}

/// What torchtune calls a module, and transformers. Phi's class has one projection for queries,
/// keys and values, and one for gate and up.
bool joins_projections(const Key& key) {
  const Json* made = key.other("model._component_");
  return made != nullptr && made->is_string() &&
         made->get_ref<const std::string&>().find(".phi") != std::string::npos;
}

void add_target(Key& key, const std::string& name) {
  make_lora(key.recipe());
  Json& targets = key.recipe().lora["targets"];
  if (!targets.is_array()) targets = Json::array();
  if (std::find(targets.begin(), targets.end(), Json(name)) == targets.end())
    targets.push_back(name);
}

}  // namespace

void read_component(Key& key) {
  const std::string made = key.text();
  std::string builder = made.substr(made.rfind('.') + 1);
  const bool quantized = builder.starts_with("qlora_");
  const bool adapted = quantized || builder.starts_with("lora_");
  if (adapted) builder = builder.substr(builder.find('_') + 1);
  if (adapted) make_lora(key.recipe());
  if (quantized) quantize_base(key.recipe(), "nf4_double");
  if (key.recipe().has_model) return key.ignore("--model says which");
  const auto name = network_of(builder);
  if (!name)
    key.refuse(fmt::format("the network '{}' is not known here", made),
               "torchtune's builders of Llama, Gemma, Mistral, Phi and Qwen by size, or --model");
  key.take("/model", *name);
  key.recipe().note({.kind = Note::Kind::assumed,
                     .field = "layers and adapters: those of transformers and peft",
                     .reason = "torchtune has its own, of which no run has been measured"});
}

void read_attention_targets(Key& key) {
  const bool joined = joins_projections(key);
  for (const std::string& name : key.list()) {
    if (name != "q_proj" && name != "k_proj" && name != "v_proj" && name != "output_proj")
      key.refuse(fmt::format("found '{}'", name), "q_proj, k_proj, v_proj or output_proj");
    add_target(key, name == "output_proj" ? "o_proj" : joined ? "qkv_proj" : name);
  }
  key.took("workload.lora.targets: " + key.recipe().lora.at("targets").dump());
}

void read_mlp_targets(Key& key) {
  if (!key.flag()) return key.ignore("no adapters there");
  if (joins_projections(key)) {
    add_target(key, "gate_up_proj");
  } else {
    add_target(key, "gate_proj");
    add_target(key, "up_proj");
  }
  add_target(key, "down_proj");
  key.took("workload.lora.targets: " + key.recipe().lora.at("targets").dump());
}

void read_output_target(Key& key) {
  if (!key.flag()) return key.ignore("no adapters there");
  add_target(key, "lm_head");
  key.took("workload.lora.targets: lm_head too");
}

void read_trainable(Key& key) {
  const bool words = key.path().ends_with("decoder_trainable");
  if (key.value() == "frozen" || key.value() == false) {
    if (words) key.refuse("a text model that does not train is not estimated", "lora or full");
    if (key.path().ends_with("encoder_trainable")) key.recipe().frozen_tower = true;
    return key.took("parts that do not train");
  }
  key.ignore("trains with the rest");
}

}  // namespace shardplan::importing::torchtune
