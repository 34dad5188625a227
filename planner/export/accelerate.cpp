// accelerate's configuration file: docs of Hugging Face accelerate, commands/config.
#include <fmt/format.h>

#include "export/export.h"
#include "frameworks/planning_registry.h"

namespace shardplan {
std::string accelerate_yaml(const Job& job, const Estimate& e) {
  const Plan& plan = job.plan;
  const Cluster& c = plan.cluster;
  std::string text = header_comment(job, e);
  text += "compute_environment: LOCAL_MACHINE\ndebug: false\n";
  text += planning_of(plan).accelerate(plan);
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
