// accelerate's configuration file: docs of Hugging Face accelerate, commands/config.
#include <fmt/format.h>

#include "export/export.h"

namespace shardplan {
namespace {

std::string_view yaml(bool value) {
  return value ? "true" : "false";
}

/// accelerate refuses precision, accumulation and clipping beside a deepspeed_config_file, which
/// has them (utils/dataclasses.py, DeepSpeedPlugin).
std::string deepspeed_block(const Plan& plan) {
  std::string text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n";
  text += "  deepspeed_config_file: ds_config.json\n";
  if (plan.cluster.nodes > 1) text += "  deepspeed_multinode_launcher: standard\n";
  text += fmt::format("  zero3_init_flag: {}\n", yaml(plan.framework.deepspeed.zero.stage == 3));
  return text;
}

/// accelerate's mesh of copies and of the GPUs that divide one (parallelism_config.py).
std::string mesh_block(const Plan& plan) {
  if (plan.copies() == 1) return "";
  return fmt::format(
      "parallelism_config:\n"
      "  parallelism_config_dp_replicate_size: {}\n"
      "  parallelism_config_dp_shard_size: {}\n",
      plan.copies(), plan.shard_ranks());
}

std::string fsdp_block(const Plan& plan) {
  const Fsdp2Options& o = plan.framework.fsdp2;
  return fmt::format(
             "distributed_type: FSDP\n"
             "fsdp_config:\n"
             "  fsdp_version: 2\n"
             "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
             "  fsdp_reshard_after_forward: {}\n"
             "  fsdp_offload_params: {}\n"
             "  fsdp_activation_checkpointing: {}\n"
             "  fsdp_cpu_ram_efficient_loading: true\n"
             "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
             yaml(o.reshard_after_forward), yaml(o.cpu_offload),
             yaml(plan.checkpointing == Checkpointing::full)) +
         mesh_block(plan);
}

std::string_view mixed_precision(const Precision& p) {
  if (p.compute == DType::bf16) return "bf16";
  return p.compute == DType::f16 ? "fp16" : "'no'";
}

}  // namespace

std::string accelerate_yaml(const Job& job, const Estimate& e) {
  const Plan& plan = job.plan;
  const Cluster& c = plan.cluster;
  std::string text = header_comment(job, e);
  text += "compute_environment: LOCAL_MACHINE\ndebug: false\n";
  switch (plan.framework.kind) {
    case FrameworkKind::deepspeed:
      text += deepspeed_block(plan);
      break;
    case FrameworkKind::fsdp2:
      text += fsdp_block(plan);
      break;
    default:
      text += fmt::format("distributed_type: {}\n", c.world() > 1 ? "MULTI_GPU" : "'NO'");
  }
  if (plan.framework.kind != FrameworkKind::deepspeed) {
    text += fmt::format("mixed_precision: {}\n", mixed_precision(plan.precision));
    text += fmt::format("gradient_accumulation_steps: {}\n", plan.workload.gradient_accumulation);
  }
  text += "downcast_bf16: 'no'\nmain_training_function: main\n";
  if (c.nodes > 1)
    text +=
        "# the same file on every node, but for machine_rank; the first node's address:\n"
        "main_process_ip: 10.0.0.1\nmain_process_port: 29500\n";
  text += fmt::format("machine_rank: 0\nnum_machines: {}\nnum_processes: {}\n", c.nodes, c.world());
  text += "rdzv_backend: static\nsame_network: true\nuse_cpu: false\n";
  return text;
}

}  // namespace shardplan
