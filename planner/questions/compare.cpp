#include "questions/compare.h"

#include <array>

#include "questions/changes.h"

namespace shardplan {
namespace {

struct Row {
  std::string_view name;
  int stage;
  OffloadDevice optimizer, parameters;
  bool within_nodes = false;  ///< where there are several: parameters gathered in the node only
};

constexpr std::array kRows{
    Row{"ZeRO-0 (data parallel)", 0, OffloadDevice::none, OffloadDevice::none},
    Row{"ZeRO-1", 1, OffloadDevice::none, OffloadDevice::none},
    Row{"ZeRO-2", 2, OffloadDevice::none, OffloadDevice::none},
    Row{"ZeRO-3", 3, OffloadDevice::none, OffloadDevice::none},
    Row{"ZeRO-3 with hpZ by node", 3, OffloadDevice::none, OffloadDevice::none, true},
    Row{"ZeRO-2 + optimizer on host", 2, OffloadDevice::cpu, OffloadDevice::none},
    Row{"ZeRO-3 + optimizer on host", 3, OffloadDevice::cpu, OffloadDevice::none},
    Row{"ZeRO-3 + all on host", 3, OffloadDevice::cpu, OffloadDevice::cpu},
    Row{"ZeRO-3 + all on NVMe", 3, OffloadDevice::nvme, OffloadDevice::nvme},
};

bool is_current(const Plan& plan, const Row& row) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  return plan.framework.kind == FrameworkKind::deepspeed && zero.stage == row.stage &&
         zero.offload_optimizer.device == row.optimizer &&
         zero.offload_param.device == row.parameters && zero.has_secondary() == row.within_nodes;
}

/// Whether a row says anything about this machine.
bool applies(const Plan& plan, const Row& row) {
  if (!row.within_nodes) return true;
  return plan.cluster.nodes > 1 && plan.cluster.gpus_per_node > 1 && plan.parallel.only_data() &&
         !plan.framework.deepspeed.zero.mics();
}

}  // namespace

std::vector<Alternative> compare_stages(const Model& model, const Plan& plan,
                                        const Calibration& calibration) {
  std::vector<Alternative> all;
  if (plan.framework.kind != FrameworkKind::deepspeed) {
    Alternative now{"as asked", plan, estimate(model, plan, calibration), true};
    all.push_back(std::move(now));
  }
  for (const Row& row : kRows) {
    if (!applies(plan, row)) continue;
    Alternative a;
    a.name = row.name;
    a.plan = plan;
    a.is_current = is_current(plan, row);
    if (!a.is_current) {
      set_zero_stage(a.plan, row.stage);
      set_offload(a.plan, row.optimizer, row.parameters);
      a.plan.framework.deepspeed.zero.hpz_partition_size =
          row.within_nodes ? plan.cluster.gpus_per_node : 1;
    }
    a.estimate = estimate(model, a.plan, calibration);
    all.push_back(std::move(a));
  }
  return all;
}

}  // namespace shardplan
