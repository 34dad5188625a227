// What the configuration asks of this model and this machine.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr Rule kRules[] = {
    {"gpu.no-bf16"_rule, Severity::warning, "bf16 on GPUs without bf16 units",
     "GPUs before Ampere have fp16 tensor cores only; PyTorch emulates bf16 there, several times "
     "slower.",
     "data/hardware/gpus.json; torch.cuda.is_bf16_supported, which counts emulation as support",
     "Use fp16 with dynamic loss scaling."},
    {"moe.leaf-modules"_rule, Severity::warning,
     "A mixture of experts at stage 3 without leaf modules",
     "Which experts run differs between ranks; unless the expert block is fetched as one leaf, "
     "some "
     "ranks wait in a gather that others never enter, and the job hangs.",
     "deepspeed/utils/z3_leaf_module.py set_z3_leaf_modules; "
     "deepspeed/runtime/zero/leaf_module_config.py",
     "Set zero_optimization.leaf_module.classes (0.18 and later), or deepspeed_moe_layer_cls_names "
     "under accelerate."},
};

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

std::span<const Rule> machine_rules() {
  return kRules;
}

void check_machine(const LintSubject& s, LintFindings& findings) {
  if (s.cluster != nullptr && s.values.flag("bf16.enabled")) {
    const Gpu& gpu = s.cluster->gpu;
    if (gpu.peak.fp16 && !gpu.peak.bf16)
      findings.config.warning("gpu.no-bf16"_rule, "bf16.enabled",
                              say("{} has no bf16 units", gpu.name), "fp16.enabled");
  }
  if (s.model == nullptr || s.values.stage() != 3) return;
  const auto family = std::find_if(
      kExpertFamilies.begin(), kExpertFamilies.end(),
      [&](const ExpertFamily& f) { return f.model_type == s.model->facts.model_type; });
  if (family == kExpertFamilies.end()) return;
  const bool by_default = family->known_leaf && s.values.version() >= DeepSpeedVersion{0, 18, 0};
  const bool by_accelerate =
      s.accelerate != nullptr &&
      s.accelerate->deepspeed_key("deepspeed_moe_layer_cls_names") != nullptr;
  const bool by_file = s.values.given("zero_optimization.leaf_module") != nullptr;
  if (!by_default && !by_accelerate && !by_file)
    findings.config.warning(
        "moe.leaf-modules"_rule, "zero_optimization.leaf_module",
        say("{} has experts, and nothing says that their block is fetched as one",
            s.model->facts.name),
        "zero_optimization.leaf_module.classes");
}

}  // namespace shardplan
