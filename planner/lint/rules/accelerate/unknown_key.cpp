#include <algorithm>
#include <array>
#include <span>

#include "base/nearest.h"
#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {
namespace {

/// accelerate: commands/config/config_args.py BaseConfig, ClusterConfig, and what process_config
/// converts. Other keys are refused.
constexpr std::array<std::string_view, 34> kKeys{"compute_environment",
                                                 "distributed_type",
                                                 "mixed_precision",
                                                 "use_cpu",
                                                 "debug",
                                                 "num_processes",
                                                 "machine_rank",
                                                 "num_machines",
                                                 "gpu_ids",
                                                 "main_process_ip",
                                                 "main_process_port",
                                                 "rdzv_backend",
                                                 "same_network",
                                                 "main_training_function",
                                                 "enable_cpu_affinity",
                                                 "fp8_config",
                                                 "deepspeed_config",
                                                 "fsdp_config",
                                                 "parallelism_config",
                                                 "megatron_lm_config",
                                                 "mpirun_config",
                                                 "downcast_bf16",
                                                 "tpu_name",
                                                 "tpu_zone",
                                                 "tpu_use_cluster",
                                                 "tpu_use_sudo",
                                                 "command_file",
                                                 "commands",
                                                 "tpu_vm",
                                                 "tpu_env",
                                                 "dynamo_config",
                                                 "dynamo_backend",
                                                 "fp16",
                                                 "ipex_config"};

}  // namespace

AccelerateRule unknown_key() {
  return {
      .rule =
          {
              .id = "accelerate.unknown-key"_rule,
              .severity = Severity::error,
              .title = "accelerate refuses this key",
              .explanation = "Unknown top-level keys raise an error before anything starts.",
              .source = kConfig,
              .advice = "Correct the spelling, or move the key into its block.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const AccelerateConfig& a, const Report& report) {
            for (const auto& [name, value] : a.document.items())
              if (std::find(kKeys.begin(), kKeys.end(), name) == kKeys.end())
                report(name, "unknown key, which accelerate refuses", "",
                       nearest(name, std::span<const std::string_view>(kKeys)));
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
