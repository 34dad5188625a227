#include "frameworks/deepspeed/launch.h"

#include <fmt/format.h>

#include "frameworks/usual_planning.h"

namespace shardplan {
namespace {

/// How the program makes its model.
std::string deepspeed_notes(const Plan& plan) {
  const Parallel& p = plan.parallel;
  const DeepSpeedOptions& options = plan.framework.deepspeed;
  std::string text;
  if (p.pipeline > 1)
    text += fmt::format(
        "# The model is a deepspeed.pipe.PipelineModule(layers, num_stages={},\n"
        "# partition_method=\"parameters\"), and the program calls engine.train_batch().\n",
        p.pipeline);
  if (options.activation_checkpointing.called && plan.checkpointing == Checkpointing::full)
    text +=
        "# Blocks go through deepspeed.checkpointing.checkpoint, once the program has called\n"
        "# deepspeed.checkpointing.configure(mpu, deepspeed_config=\"ds_config.json\").\n";
  if (options.moe)
    text +=
        "# Sparse layers are deepspeed.moe.layer.MoE; its parameters go to the optimizer by\n"
        "# deepspeed.moe.utils.split_params_into_different_moe_groups_for_optimizer.\n";
  if (p.sequence > 1)
    text += fmt::format(
        "# {} GPUs share a sequence: UlyssesSPAttentionHF.register_with_transformers and\n"
        "# UlyssesSPDataLoaderAdapter of deepspeed.runtime.sequence_parallel.ulysses_sp.\n",
        p.sequence);
  return text;
}

std::string deepspeed_command(const Cluster& c) {
  if (c.nodes == 1)
    return fmt::format("exec deepspeed --num_gpus {} \"$program\" \"${{arguments[@]}}\" \"$@\"",
                       c.gpus_per_node);
  return fmt::format(
      "# hostfile: a line a node, \"name slots={0}\"\n"
      "    exec deepspeed --hostfile hostfile --num_nodes {1} --num_gpus {0} "
      "\"$program\" \"${{arguments[@]}}\" \"$@\"",
      c.gpus_per_node, c.nodes);
}

}  // namespace

Launch deepspeed_launch(const Job& job) {
  Launch launch;
  launch.notes = deepspeed_notes(job.plan);
  // HF Trainer wants these to agree with the ds_config's blocks, which autocast leaves off.
  launch.arguments =
      usual::trainer_arguments(job.plan, job.plan.precision.params, "--deepspeed ds_config.json");
  launch.launcher = "deepspeed";
  launch.command = deepspeed_command(job.plan.cluster);
  return launch;
}

}  // namespace shardplan
