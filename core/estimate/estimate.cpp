#include "estimate/estimate.h"

#include <utility>

#include "base/checked.h"
#include "base/each.h"
#include "estimate/assemble.h"
#include "estimate/detail.h"
#include "estimate/generation.h"
#include "estimate/rank_programs.h"
#include "estimate/ranks.h"
#include "estimate/too_large.h"

namespace shardplan {
namespace {

/// What the estimates of a plan's ranks have in common.
struct PlanEstimates {
  const Model& model;
  const Plan& plan;
  const Passes& passes;  ///< what the ranks' programs were lowered from
  const Calibration& calibration;

  /// `timed`: the rank that the step waits for.
  TimeEstimate time(const Program& timed) const {
    return plan.workload.kind == WorkKind::inference
               ? estimate_generation_time(passes.rank.model(), plan, calibration.time)
               : estimate_time(timed, plan, passes, calibration.time);
  }

  /// None where the allocator is not simulated, or has nothing to do.
  std::vector<ReservedRuns> runs(const std::vector<const Program*>& programs,
                                 ReservedMemory reserved, const ForEach& each = in_turn) const {
    if (reserved == ReservedMemory::ratio || programs.front()->one_block) return {};
    return allocator_runs(plan, calibration, programs, each);
  }

  /// `runs`: of several programs, this one's is number `i`.
  Estimate estimate(const Program& program, const MemoryProfile& memory,
                    const std::vector<ReservedRuns>& runs, std::size_t i,
                    const TimeEstimate& time) const {
    Estimate e =
        assemble(plan, calibration, program, memory, runs.empty() ? nullptr : &runs[i], time);
    e.parameters = model.parameter_count();
    e.trainable_parameters = model.trainable_count();
    e.tensors = model.tensor_count();
    return e;
  }
};

/// Where samples have several lengths the time is that of the typical step, and tokens that pad
/// others do not count.
void add_typical_step(Estimate& e, const Model& model, const Plan& plan,
                      const Calibration& calibration, ReservedMemory reserved) {
  if (!plan.workload.lengths || plan.workload.kind != WorkKind::train) return;
  TypicalStep typical = typical_step(plan);
  const Plan same = plan_of_typical_step(plan, typical);
  const Estimate step = estimate(model, same, calibration, reserved);
  typical.allocated = step.allocated.point;
  e.time = step.time;
  e.time.tokens_per_second *= typical.counted;
  e.typical = typical;
}

}  // namespace

Estimate estimate(const Model& model, const Plan& plan, const Calibration& calibration,
                  ReservedMemory reserved) try {
  if (plan.workload.generation.engine) return estimate_serving(model, plan, calibration);
  Estimate e =
      estimate(model, plan, run_passes(model, plan, calibration.time), calibration, reserved);
  add_typical_step(e, model, plan, calibration, reserved);
  return e;
} catch (const OverflowError&) {
  throw too_large(plan.workload);
}

Estimate estimate(const Model& model, const Plan& plan, const Passes& passes,
                  const Calibration& calibration, ReservedMemory reserved) {
  const PlanEstimates of_plan{model, plan, passes, calibration};
  RankPrograms ranks = lower_ranks(passes.rank, plan);
  if (reserved == ReservedMemory::simulated)
    take_most_cached(ranks, ranks.worst, passes.rank, plan);
  const Program& worst = ranks.programs[ranks.worst];
  const std::vector<ReservedRuns> runs = of_plan.runs({&worst}, reserved);
  Estimate e = of_plan.estimate(worst, ranks.memory[ranks.worst], runs, 0,
                                of_plan.time(ranks.programs[ranks.timed]));
  e.ranks_differ = ranks.differ;
  return e;
}

DetailedEstimate estimate_in_detail(const Model& model, const Plan& plan,
                                    const Calibration& calibration, const ForEach& each) try {
  if (plan.workload.generation.engine) return {estimate_serving(model, plan, calibration), {}, {}};
  const Passes passes = run_passes(model, plan, calibration.time);
  const PlanEstimates of_plan{model, plan, passes, calibration};
  RankPrograms ranks = lower_ranks(passes.rank, plan);
  for (std::size_t i = 0; i < ranks.programs.size(); ++i)
    if (ranks.differ || i == ranks.worst) take_most_cached(ranks, i, passes.rank, plan);
  Program& worst = ranks.programs[ranks.worst];
  const TimeEstimate time = of_plan.time(ranks.programs[ranks.timed]);
  DetailedEstimate detail;
  if (ranks.differ) {
    const std::vector<ReservedRuns> runs =
        of_plan.runs(ranks.all(), ReservedMemory::simulated, each);
    detail.ranks.resize(ranks.programs.size());
    each(detail.ranks.size(), [&](std::size_t i) {
      detail.ranks[i] = of_plan.estimate(ranks.programs[i], ranks.memory[i], runs, i, time);
    });
    detail.estimate = detail.ranks[ranks.worst];
  } else {
    const std::vector<ReservedRuns> runs = of_plan.runs({&worst}, ReservedMemory::simulated);
    detail.estimate = of_plan.estimate(worst, ranks.memory[ranks.worst], runs, 0, time);
  }
  detail.estimate.ranks_differ = ranks.differ;
  add_typical_step(detail.estimate, model, plan, calibration, ReservedMemory::simulated);
  detail.program = std::move(worst);
  return detail;
} catch (const OverflowError&) {
  throw too_large(plan.workload);
}

std::vector<Estimate> estimate_ranks(const Model& model, const Plan& plan,
                                     const Calibration& calibration) {
  return estimate_ranks(model, plan, run_passes(model, plan, calibration.time), calibration,
                        ReservedMemory::simulated);
}

std::vector<Estimate> estimate_ranks(const Model& model, const Plan& plan, const Passes& passes,
                                     const Calibration& calibration, ReservedMemory reserved) {
  const PlanEstimates of_plan{model, plan, passes, calibration};
  RankPrograms ranks = lower_ranks(passes.rank, plan);
  if (reserved == ReservedMemory::simulated)
    for (std::size_t i = 0; i < ranks.programs.size(); ++i)
      take_most_cached(ranks, i, passes.rank, plan);
  const std::vector<ReservedRuns> runs = of_plan.runs(ranks.all(), reserved);
  std::vector<Estimate> all;
  for (std::size_t i = 0; i < ranks.programs.size(); ++i)
    all.push_back(of_plan.estimate(ranks.programs[i], ranks.memory[i], runs, i,
                                   of_plan.time(ranks.programs[i])));
  return all;
}

}  // namespace shardplan
