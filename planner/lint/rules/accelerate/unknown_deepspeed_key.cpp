#include <algorithm>
#include <array>
#include <span>

#include "base/nearest.h"
#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {
namespace {

/// accelerate: commands/config/cluster.py, commands/launch.py.
constexpr std::array<std::string_view, 16> kDeepSpeedKeys{"deepspeed_config_file",
                                                          "zero_stage",
                                                          "gradient_accumulation_steps",
                                                          "gradient_clipping",
                                                          "offload_optimizer_device",
                                                          "offload_param_device",
                                                          "offload_optimizer_nvme_path",
                                                          "offload_param_nvme_path",
                                                          "zero3_init_flag",
                                                          "zero3_save_16bit_model",
                                                          "deepspeed_hostfile",
                                                          "deepspeed_exclusion_filter",
                                                          "deepspeed_inclusion_filter",
                                                          "deepspeed_multinode_launcher",
                                                          "deepspeed_moe_layer_cls_names",
                                                          "use_deepspeed"};

}  // namespace

AccelerateRule unknown_deepspeed_key() {
  return {
      .rule =
          {
              .id = "accelerate.unknown-deepspeed-key"_rule,
              .severity = Severity::warning,
              .title = "accelerate ignores this key of deepspeed_config",
              .explanation =
                  "Keys of the block become launch arguments; those that no code reads do nothing.",
              .source = "accelerate: commands/launch.py",
              .advice = "Correct the spelling, or remove it.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const AccelerateConfig& a, const Report& report) {
            const Json* block = value_at(a.document, "deepspeed_config");
            if (block == nullptr || !block->is_object()) return;
            for (const auto& [name, value] : block->items())
              if (std::find(kDeepSpeedKeys.begin(), kDeepSpeedKeys.end(), name) ==
                  kDeepSpeedKeys.end())
                report("deepspeed_config." + name, "unknown key, which accelerate ignores", "",
                       nearest(name, std::span<const std::string_view>(kDeepSpeedKeys)));
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
