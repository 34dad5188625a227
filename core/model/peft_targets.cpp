#include "model/peft_targets.h"

#include <algorithm>
#include <array>
#include <span>

#include "model/model.h"

namespace shardplan {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 2> kQueryValue{"q_proj", "v_proj"};
constexpr std::array<std::string_view, 2> kShortQueryValue{"q", "v"};
constexpr std::array<std::string_view, 2> kLongQueryValue{"query", "value"};
constexpr std::array<std::string_view, 2> kDebertaV2{"query_proj", "value_proj"};
constexpr std::array<std::string_view, 1> kDeberta{"in_proj"};
constexpr std::array<std::string_view, 1> kGpt2{"c_attn"};
constexpr std::array<std::string_view, 1> kJoint{"query_key_value"};
constexpr std::array<std::string_view, 1> kMpt{"Wqkv"};
constexpr std::array<std::string_view, 4> kPhiLinears{"q_proj", "v_proj", "fc1", "fc2"};
constexpr std::array<std::string_view, 4> kNemotron{"q_proj", "k_proj", "v_proj", "o_proj"};

struct Default {
  std::string_view model_type;
  Names targets;
};

/// peft 0.21 (utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING), of the types
/// that are described here. Mixtral's is not among them: with none said, 0.21.2 looks for experts'
/// weights that nobody named, and refuses.
constexpr std::array kDefaults{
    Default{"t5", kShortQueryValue},
    Default{"mt5", kShortQueryValue},
    Default{"bart", kQueryValue},
    Default{"gpt2", kGpt2},
    Default{"bloom", kJoint},
    Default{"opt", kQueryValue},
    Default{"gptj", kQueryValue},
    Default{"gpt_neox", kJoint},
    Default{"gpt_neo", kQueryValue},
    Default{"bert", kLongQueryValue},
    Default{"roberta", kLongQueryValue},
    Default{"xlm-roberta", kLongQueryValue},
    Default{"electra", kLongQueryValue},
    Default{"deberta-v2", kDebertaV2},
    Default{"deberta", kDeberta},
    Default{"llama", kQueryValue},
    Default{"llama4", kQueryValue},
    Default{"mpt", kMpt},
    Default{"falcon", kJoint},
    Default{"mistral", kQueryValue},
    Default{"stablelm", kQueryValue},
    Default{"phi", kPhiLinears},
    Default{"gemma", kQueryValue},
    Default{"gemma2", kQueryValue},
    Default{"gemma3_text", kQueryValue},
    Default{"gemma4", kQueryValue},
    Default{"qwen2", kQueryValue},
    Default{"qwen3", kQueryValue},
    Default{"nemotron_h", kNemotron},
};

/// Types whose experts were linears before transformers 5, and are joint weights since (its
/// conversion_mapping.py, _MODEL_TO_CONVERSION_PATTERN); Mixtral is in peft's own copy of it.
constexpr std::array<std::string_view, 3> kLikeMixtral{"mixtral", "minimax", "minimax_m2"};
constexpr std::array<std::string_view, 17> kLikeQwen{
    "afmoe",          "deepseek_v2", "deepseek_v3", "deepseek_v32",  "dots1",     "ernie4_5_moe",
    "exaone_moe",     "flex_olmo",   "glm4_moe",    "glm4_moe_lite", "glm4v_moe", "glm_moe_dsa",
    "hunyuan_v1_moe", "olmoe",       "qwen3_moe",   "qwen3_next",    "solar_open"};

/// peft 0.21 (utils/transformers_weight_conversion.py, _MOE_TARGET_MODULE_MAPPING).
struct FormerNames {
  std::string_view gate, up, down;
};
constexpr FormerNames kOfMixtral{"w1", "w3", "w2"};
constexpr FormerNames kOfQwen{"gate_proj", "up_proj", "down_proj"};
constexpr std::string_view kRouter = "gate";

/// peft 0.21 (tuners/tuners_utils.py, _check_lora_target_modules_mamba).
constexpr std::array<std::string_view, 4> kOfMamba{"falcon_h1", "mamba", "mamba2", "nemotron_h"};

bool has(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool targets(const Lora& lora, std::string_view name) {
  return std::any_of(lora.targets.begin(), lora.targets.end(), [&](const std::string& target) {
    return target == "all-linear" || target == name;
  });
}

}  // namespace

std::vector<std::string> linear_names(const Model& model) {
  constexpr std::string_view kWeight = ".weight";
  std::vector<std::string> names;
  for (const Parameter& p : model.parameters) {
    std::string_view name = p.name;
    if (!p.quantizable || p.no_linear || !name.ends_with(kWeight)) continue;
    name.remove_suffix(kWeight.size());
    name.remove_prefix(name.rfind('.') + 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> default_targets(std::string_view model_type) {
  const auto* found = std::find_if(kDefaults.begin(), kDefaults.end(),
                                   [&](const Default& d) { return d.model_type == model_type; });
  if (found == kDefaults.end()) return {};
  return {found->targets.begin(), found->targets.end()};
}

bool targets_mamba_output(std::string_view model_type, const Lora& lora) {
  return has(kOfMamba, model_type) && targets(lora, "out_proj");
}

ExpertTargets take_expert_targets(std::string_view model_type, Lora& lora) {
  const bool mixtral = has(kLikeMixtral, model_type);
  if (!mixtral && !has(kLikeQwen, model_type)) return {};
  const FormerNames names = mixtral ? kOfMixtral : kOfQwen;
  const bool gate = targets(lora, names.gate), up = targets(lora, names.up);
  ExpertTargets experts;
  if (gate != up) {
    experts.alone = gate ? names.gate : names.up;
    experts.missing = gate ? names.up : names.gate;
  }
  const auto take = [&](std::string_view name, std::string_view weight) {
    if (!targets(lora, name)) return;
    experts.taken.emplace_back(name);
    if (std::find(lora.parameters.begin(), lora.parameters.end(), weight) == lora.parameters.end())
      lora.parameters.emplace_back(weight);
  };
  take(names.gate, "gate_up_proj");
  take(names.up, "gate_up_proj");
  take(names.down, "down_proj");
  take(kRouter, "gate.weight");
  experts.doubles_gate_up = gate;
  return experts;
}

}  // namespace shardplan
