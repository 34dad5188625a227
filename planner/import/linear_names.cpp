#include "import/linear_names.h"

#include <algorithm>
#include <string_view>

#include "model/peft_targets.h"

namespace shardplan::importing {

std::vector<std::string> linears_beside_experts(const Model& model) {
  Lora all;
  all.targets = {"all-linear"};
  if (take_expert_targets(model.facts.model_type, all).taken.empty()) return {};
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

}  // namespace shardplan::importing
