// What peft's LoRA adapts of a network, by its model_type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace shardplan {

struct Model;

/// Last parts of the names of a network's linear layers but for the head, each once.
std::vector<std::string> linear_names(const Model& model);

/// peft's own `target_modules` of a type, where a job names none; empty: it has none and refuses.
std::vector<std::string> default_targets(std::string_view model_type);

/// Names of linears that peft looks for among the experts' joint weights, because transformers 5
/// has no such linears: the linears that do have such names stay as they are.
struct ExpertTargets {
  std::vector<std::string> taken;
  bool doubles_gate_up = false;     ///< two linears in one weight: twice the rank
  std::string_view alone, missing;  ///< peft refuses one of both without the other; empty: fine
};

/// A module that peft refuses in a network with Mamba's layers, where `lora` targets it.
bool targets_mamba_output(std::string_view model_type, const Lora& lora);

/// Adds the experts' weights to `lora` where peft does; nothing for most types.
ExpertTargets take_expert_targets(std::string_view model_type, Lora& lora);

}  // namespace shardplan
