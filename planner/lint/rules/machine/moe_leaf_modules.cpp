#include <algorithm>
#include <array>

#include "lint/rules/machine/family.h"

namespace shardplan::lint_rules::machine {
namespace {

/// Families with experts, and whether leaf_module's default names their block.
struct ExpertFamily {
  std::string_view model_type;
  bool known_leaf;
};
constexpr std::array kExpertFamilies{
    ExpertFamily{"mixtral", true},      ExpertFamily{"qwen2_moe", true},
    ExpertFamily{"qwen3_moe", true},    ExpertFamily{"deepseek_v2", false},
    ExpertFamily{"deepseek_v3", false}, ExpertFamily{"gpt_oss", false}};

}  // namespace

LintRule moe_leaf_modules() {
  return {
      .rule =
          {
              .id = "moe.leaf-modules"_rule,
              .severity = Severity::warning,
              .title = "A mixture of experts at stage 3 without leaf modules",
              .explanation =
                  "Which experts run differs between ranks; unless the expert block is fetched as "
                  "one leaf, some ranks wait in a gather that others never enter, and the job "
                  "hangs.",
              .source = "deepspeed/utils/z3_leaf_module.py set_z3_leaf_modules; "
                        "deepspeed/runtime/zero/leaf_module_config.py",
              .advice = "Set zero_optimization.leaf_module.classes (0.18 and later), or "
                        "deepspeed_moe_layer_cls_names under accelerate.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.model == nullptr || s.values.stage() != 3) return;
            const auto family = std::find_if(
                kExpertFamilies.begin(), kExpertFamilies.end(),
                [&](const ExpertFamily& f) { return f.model_type == s.model->facts.model_type; });
            if (family == kExpertFamilies.end()) return;
            const bool by_default =
                family->known_leaf && s.values.version() >= DeepSpeedVersion{0, 18, 0};
            const bool by_accelerate =
                s.accelerate != nullptr &&
                s.accelerate->deepspeed_key("deepspeed_moe_layer_cls_names") != nullptr;
            const bool by_file = s.values.given("zero_optimization.leaf_module") != nullptr;
            if (!by_default && !by_accelerate && !by_file)
              report("zero_optimization.leaf_module",
                     say("{} has experts, and nothing says that their block is fetched as one",
                         s.model->facts.name),
                     "zero_optimization.leaf_module.classes");
          },
  };
}

}  // namespace shardplan::lint_rules::machine
