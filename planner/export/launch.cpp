// The commands that start a training program on the plan's nodes.
#include <fmt/format.h>

#include <algorithm>

#include "export/export.h"
#include "frameworks/planning_registry.h"

namespace shardplan {
namespace {

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
  const Launch launch = planning_of(job.plan).launch(job);
  const std::vector<std::string_view> files = export_formats(job.plan);
  const bool accelerate = std::find(files.begin(), files.end(), "accelerate") != files.end();
  std::string text = "#!/usr/bin/env bash\n" + header_comment(job, e);
  text += fmt::format("#\n# ./launch.sh {}torchrun|srun{} PROGRAM.py [ARGUMENT...]\n",
                      launch.launcher.empty() ? "" : launch.launcher + "|",
                      accelerate ? "|accelerate" : "");
  text += launch.program;
  if (c.nodes > 1)
    text += fmt::format("# torchrun{}: on every node, with HEAD set to the first one's address\n",
                        accelerate ? " and accelerate" : "");
  text += launch.notes;
  text +=
      "set -euo pipefail\nlauncher=\"$1\" program=\"$2\"\nshift 2\n"
      "cd \"$(dirname \"${BASH_SOURCE[0]}\")\"\n";
  text += launch.arguments;
  text += "case \"$launcher\" in\n";
  if (!launch.launcher.empty())
    text += fmt::format("  {})\n    {}\n    ;;\n", launch.launcher, launch.command);
  text += fmt::format("  torchrun)\n    exec {} {}\n    ;;\n",
                      torchrun_line(c, "${HEAD:?the first node}"), launch.run);
  text += fmt::format(
      "  srun) # inside an allocation of {0} node(s)\n"
      "    HEAD=\"$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\"\n"
      "    exec srun --nodes {0} --ntasks-per-node 1 --gpus-per-node {1} --kill-on-bad-exit 1 \\\n"
      "      {2} {3}\n    ;;\n",
      c.nodes, c.gpus_per_node, torchrun_line(c, "$HEAD"), launch.run);
  if (accelerate)
    text += "  accelerate)\n    exec accelerate launch --config_file accelerate.yaml " +
            launch.run + "\n    ;;\n";
  text += "  *)\n    echo \"launch.sh: no launcher '$launcher'\" >&2\n    exit 2\n    ;;\nesac\n";
  return text;
}

}  // namespace shardplan
