// The commands that start a training program on the plan's nodes.
#include <fmt/format.h>

#include <algorithm>

#include "export/export.h"

namespace shardplan {
namespace {

/// As Hugging Face's TrainingArguments have them; other programs read the files beside this one.
std::string trainer_arguments(const Plan& plan) {
  const Workload& w = plan.workload;
  std::string text;
  const auto add = [&](std::string line) { text += "  " + std::move(line) + "\n"; };
  add(fmt::format("--per_device_train_batch_size {}", w.micro_batch));
  add(fmt::format("--gradient_accumulation_steps {}", w.gradient_accumulation));
  add(fmt::format("--max_grad_norm {}", plan.gradient_clipping));
  // HF Trainer wants these to agree with the ds_config's blocks, which autocast leaves off.
  const bool deepspeed = plan.framework.kind == FrameworkKind::deepspeed;
  const DType type = deepspeed ? plan.precision.params : plan.precision.compute;
  if (type == DType::bf16) add("--bf16 true");
  if (type == DType::f16) add("--fp16 true");
  if (plan.checkpointing == Checkpointing::full) add("--gradient_checkpointing true");
  if (deepspeed) add("--deepspeed ds_config.json");
  return text;
}

/// What a plan needs that no argument says: how the program makes its model.
std::string notes(const Plan& plan) {
  const Parallel& p = plan.parallel;
  const bool deepspeed = plan.framework.kind == FrameworkKind::deepspeed;
  std::string text;
  if (deepspeed && p.pipeline > 1)
    text += fmt::format(
        "# The model is a deepspeed.pipe.PipelineModule(layers, num_stages={},\n"
        "# partition_method=\"parameters\"), and the program calls engine.train_batch().\n",
        p.pipeline);
  if (deepspeed && plan.framework.deepspeed.activation_checkpointing.called &&
      plan.checkpointing == Checkpointing::full)
    text +=
        "# Blocks go through deepspeed.checkpointing.checkpoint, once the program has called\n"
        "# deepspeed.checkpointing.configure(mpu, deepspeed_config=\"ds_config.json\").\n";
  if (deepspeed && plan.framework.deepspeed.moe)
    text +=
        "# Sparse layers are deepspeed.moe.layer.MoE; its parameters go to the optimizer by\n"
        "# deepspeed.moe.utils.split_params_into_different_moe_groups_for_optimizer.\n";
  if (deepspeed && p.sequence > 1)
    text += fmt::format(
        "# {} GPUs share a sequence: UlyssesSPAttentionHF.register_with_transformers and\n"
        "# UlyssesSPDataLoaderAdapter of deepspeed.runtime.sequence_parallel.ulysses_sp.\n",
        p.sequence);
  if (!deepspeed && p.tensor > 1)
    text += fmt::format(
        "# {} GPUs share each layer: from_pretrained(..., tp_plan=\"auto\",\n"
        "# device_mesh=mesh[\"tensor\"]); fsdp2.py makes the mesh.\n",
        p.tensor);
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

std::string torchrun_line(const Cluster& c, std::string_view head) {
  if (c.nodes == 1)
    return fmt::format("torchrun --standalone --nproc-per-node {}", c.gpus_per_node);
  return fmt::format(
      "torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d "
      "--rdzv-endpoint \"{}:29500\"",
      c.nodes, c.gpus_per_node, head);
}

}  // namespace

std::string launch_script(const Job& job, const Estimate& e) {
  const Cluster& c = job.plan.cluster;
  const bool deepspeed = job.plan.framework.kind == FrameworkKind::deepspeed;
  const bool megatron = job.plan.framework.kind == FrameworkKind::megatron;
  const std::vector<std::string_view> files = export_formats(job.plan);
  const bool accelerate = std::find(files.begin(), files.end(), "accelerate") != files.end();
  const std::string run = megatron ? "\"$program\" \"${network[@]}\" \"${arguments[@]}\" \"$@\""
                                   : "\"$program\" \"${arguments[@]}\" \"$@\"";
  std::string text = "#!/usr/bin/env bash\n" + header_comment(job, e);
  text += fmt::format("#\n# ./launch.sh {}torchrun|srun{} PROGRAM.py [ARGUMENT...]\n",
                      deepspeed ? "deepspeed|" : "", accelerate ? "|accelerate" : "");
  if (megatron)
    text += "# PROGRAM.py: Megatron-LM's pretrain_gpt.py; data, tokenizer and schedule are yours\n";
  if (c.nodes > 1)
    text += fmt::format("# torchrun{}: on every node, with HEAD set to the first one's address\n",
                        accelerate ? " and accelerate" : "");
  if (!megatron) text += notes(job.plan);
  text +=
      "set -euo pipefail\nlauncher=\"$1\" program=\"$2\"\nshift 2\n"
      "cd \"$(dirname \"${BASH_SOURCE[0]}\")\"\n";
  text += megatron ? megatron_arguments(job)
                   : "arguments=( # as TrainingArguments of Hugging Face have them\n" +
                         trainer_arguments(job.plan) + ")\n";
  text += "case \"$launcher\" in\n";
  if (deepspeed) text += "  deepspeed)\n    " + deepspeed_command(c) + "\n    ;;\n";
  text += fmt::format("  torchrun)\n    exec {} {}\n    ;;\n",
                      torchrun_line(c, "${HEAD:?the first node}"), run);
  text += fmt::format(
      "  srun) # inside an allocation of {0} node(s)\n"
      "    HEAD=\"$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\"\n"
      "    exec srun --nodes {0} --ntasks-per-node 1 --gpus-per-node {1} --kill-on-bad-exit 1 \\\n"
      "      {2} {3}\n    ;;\n",
      c.nodes, c.gpus_per_node, torchrun_line(c, "$HEAD"), run);
  if (accelerate)
    text += "  accelerate)\n    exec accelerate launch --config_file accelerate.yaml " + run +
            "\n    ;;\n";
  text += "  *)\n    echo \"launch.sh: no launcher '$launcher'\" >&2\n    exit 2\n    ;;\nesac\n";
  return text;
}

}  // namespace shardplan
