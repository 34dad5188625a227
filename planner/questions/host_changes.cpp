#include "questions/host_changes.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "frameworks/registry.h"

namespace shardplan {
namespace {

Change moved(std::string what, std::string how, OffloadDevice optimizer, OffloadDevice parameters) {
  return {std::move(what), std::move(how),
          [optimizer, parameters](Plan& p) { set_offload(p, optimizer, parameters); }, "offload"};
}

}  // namespace

std::vector<Change> less_on_hosts(const Plan& plan) {
  const ZeroOptions* zero = zero_options(plan);
  if (zero == nullptr) return {};
  constexpr auto kGpu = OffloadDevice::none;
  constexpr auto kHost = OffloadDevice::cpu;
  constexpr auto kNvme = OffloadDevice::nvme;
  const bool optimizer_away = zero->offload_optimizer.device != kGpu;
  const bool parameters_away = zero->offload_param.device != kGpu;
  if (!optimizer_away && !parameters_away) return {};
  std::vector<Change> changes;
  if (optimizer_away && parameters_away)
    changes.push_back(moved("parameters on the GPUs, optimizer states on the host",
                            "zero_optimization: offload_optimizer.device: cpu, no offload_param",
                            kHost, kGpu));
  changes.push_back(moved("all states on the GPUs",
                          "zero_optimization: no offload_optimizer, no offload_param", kGpu, kGpu));
  if (plan.cluster.nvme && zero->stage == 3)
    changes.push_back(moved(
        "optimizer states and parameters on NVMe",
        "zero_optimization.offload_optimizer.device and offload_param.device: nvme", kNvme, kNvme));
  return changes;
}

}  // namespace shardplan
