#include <algorithm>
#include <array>
#include <span>

#include "estimate/rlhf.h"
#include "frameworks/registry.h"
#include "questions/changes.h"
#include "questions/compare.h"

namespace shardplan {
namespace {

struct RlhfRow {
  std::string_view name;
  int stage;
  OffloadDevice optimizer;
};
constexpr std::array kRlhfRows{
    RlhfRow{"ZeRO-0 (data parallel)", 0, OffloadDevice::none},
    RlhfRow{"ZeRO-1", 1, OffloadDevice::none},
    RlhfRow{"ZeRO-2", 2, OffloadDevice::none},
    RlhfRow{"ZeRO-3", 3, OffloadDevice::none},
    RlhfRow{"ZeRO-2 + optimizer on host", 2, OffloadDevice::cpu},
    RlhfRow{"ZeRO-3 + optimizer on host", 3, OffloadDevice::cpu},
};

/// Every model under the stage; the actor generates from what it trains.
Rlhf at_stage(const Rlhf& rlhf, const RlhfRow& row) {
  Rlhf changed = rlhf;
  const auto set = [&](Plan& plan) {
    const Workload work = plan.workload;
    set_zero_stage(plan, row.stage);
    set_offload(plan, row.optimizer, OffloadDevice::none);
    plan.workload = work;
  };
  for (Role& role : changed.roles) set(role.plan);
  if (changed.generator) set(changed.generation);
  return changed;
}

bool is_current(const Rlhf& rlhf, const RlhfRow& row) {
  return std::all_of(rlhf.roles.begin(), rlhf.roles.end(), [&](const Role& role) {
    const ZeroOptions* zero = zero_options(role.plan);
    return zero != nullptr && zero->stage == row.stage &&
           zero->offload_optimizer.device == row.optimizer &&
           zero->offload_param.device == OffloadDevice::none;
  });
}

/// A network that Megatron-LM divides is none that each rank of DeepSpeed has whole.
bool is_divided(const Rlhf& rlhf) {
  return std::any_of(rlhf.roles.begin(), rlhf.roles.end(), [](const Role& role) {
    return !role.plan.parallel.only_data() && zero_options(role.plan) == nullptr;
  });
}

}  // namespace

std::vector<Alternative> compare_rlhf(const Rlhf& rlhf, const Calibration& calibration) {
  std::vector<Alternative> all;
  const auto add = [&](std::string name, const Rlhf& changed, bool current = false) {
    all.push_back({std::move(name), changed.roles.front().plan, estimate_rlhf(changed, calibration),
                   current});
  };
  const bool listed = std::any_of(kRlhfRows.begin(), kRlhfRows.end(),
                                  [&](const RlhfRow& row) { return is_current(rlhf, row); });
  if (!listed) add("as asked", rlhf, true);
  const std::span<const RlhfRow> rows(kRlhfRows);
  for (const RlhfRow& row : is_divided(rlhf) ? rows.first(0) : rows) {
    const bool current = is_current(rlhf, row);
    add(std::string(row.name), current ? rlhf : at_stage(rlhf, row), current);
  }
  Rlhf away = rlhf;
  bool moves = false;
  for (Role& role : away.roles) {
    moves = moves || (!role.trains && !role.idle_on_host());
    if (!role.trains) role.idle = Idle::host;
  }
  if (moves) add("frozen models on the host while idle", away);
  if (rlhf.hybrid) {
    Rlhf plain = rlhf;
    plain.hybrid.reset();
    plain.generation.workload.generation.injection.reset();
    add("without the hybrid engine", plain);
  }
  return all;
}

}  // namespace shardplan
