#include "questions/compare.h"

#include <array>
#include <optional>

#include "frameworks/registry.h"
#include "parallel/problem.h"
#include "questions/changes.h"
#include "questions/other_degrees.h"

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
  const ZeroOptions* zero = zero_options(plan);
  return zero != nullptr && zero->stage == row.stage &&
         zero->offload_optimizer.device == row.optimizer &&
         zero->offload_param.device == row.parameters && zero->has_secondary() == row.within_nodes;
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
  const auto add = [&](std::string name, Plan changed, bool current) {
    Estimate e = estimate(model, changed, calibration);
    all.push_back({std::move(name), std::move(changed), std::move(e), current});
  };
  const bool divided = !plan.parallel.only_data();
  bool listed = false;  // a row says what was asked
  for (const Row& row : kRows) listed = listed || (applies(plan, row) && is_current(plan, row));
  if (!listed) add("as asked", plan, true);
  if (!divided || zero_options(plan) != nullptr)
    for (const Row& row : kRows) {
      if (!applies(plan, row)) continue;
      const bool current = is_current(plan, row);
      Plan changed = plan;
      if (!current) {
        set_zero_stage(changed, row.stage);
        set_offload(changed, row.optimizer, row.parameters);
        changed.framework.deepspeed.zero.hpz_partition_size =
            row.within_nodes ? plan.cluster.gpus_per_node : 1;
      }
      if (current || !division_problem(model, changed))
        add(std::string(row.name), std::move(changed), current);
    }
  if (divided)
    for (OtherDegrees& other : other_degrees(model, plan))
      add(std::move(other.name), std::move(other.plan), false);
  return all;
}

std::vector<Alternative> compare_plans(const Job& job, const Calibration& calibration) {
  if (job.rlhf) return compare_rlhf(*job.rlhf, calibration);
  return job.plan.workload.kind == WorkKind::inference
             ? compare_generation(job.model, job.plan, calibration)
             : compare_stages(job.model, job.plan, calibration);
}

}  // namespace shardplan
