#include "questions/search/bounds.h"

#include <algorithm>

#include "estimate/ranks.h"

namespace shardplan {
namespace {

std::int64_t excess(const ResourceVerdict& r) {
  return r.fit == Fit::does_not_fit && r.available ? r.needed - *r.available : 0;
}

StatesBound::Rank rank_of(const Estimate& e) {
  return {e.phases[static_cast<std::size_t>(Phase::step)].end, e.time.optimizer_seconds};
}

/// Stages that compute alike to rounding: the estimate times one of those that compute most.
constexpr double kAlike = 1e-9;

}  // namespace

Plan lightest_member(const SearchSpace& space, Plan plan) {
  for (std::size_t a = space.states_fixed; a < space.axes.size(); ++a) space.axes[a].apply(plan, 0);
  plan.workload.gradient_accumulation = 1;  // gradients of several passes take more of the host
  return plan;
}

std::int64_t overhead_of(const Estimate& e) {
  return e.breakdown[index_of(Category::cuda_context)].resident +
         e.breakdown[index_of(Category::nccl)].resident;
}

StatesBound states_bound(const Model& model, const Plan& plan, const Passes& passes,
                         const Calibration& calibration) {
  std::vector<Estimate> stages;
  if (plan.parallel.pipeline > 1)
    stages = estimate_ranks(model, plan, passes, calibration, ReservedMemory::ratio);
  else
    stages.push_back(estimate(model, plan, passes, calibration, ReservedMemory::ratio));
  StatesBound bound;
  for (const Estimate& e : stages) {
    bound.ranks.push_back(rank_of(e));
    const std::int64_t parameters = e.breakdown[index_of(Category::parameters)].resident;
    bound.parameter_bytes = std::max(bound.parameter_bytes, parameters);
    bound.resident_bytes = std::max(bound.resident_bytes, bound.ranks.back().resident_bytes);
    const std::int64_t overhead = overhead_of(e);
    bound.overhead_bytes =
        bound.ranks.size() == 1 ? overhead : std::min(bound.overhead_bytes, overhead);
  }
  // These are the same on every rank.
  const Estimate& e = stages.front();
  bound.host = e.verdict.host.fit;
  bound.nvme = e.verdict.nvme.fit;
  bound.off_gpu_excess = excess(e.verdict.host) + excess(e.verdict.nvme);
  return bound;
}

WorkBound work_bound(const std::vector<LeastWork>& ranks, const StatesBound& states) {
  WorkBound bound;
  double most = 0;
  for (const LeastWork& work : ranks) most = std::max(most, work.flops);
  bool timed = false;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const LeastWork& work = ranks[r];
    const StatesBound::Rank& rank = states.ranks[r];
    bound.allocated_bytes =
        std::max(bound.allocated_bytes, checked_add(rank.resident_bytes, work.activation_bytes));
    if (work.seconds <= 0 || work.flops < most * (1 - kAlike)) continue;
    const double seconds = work.seconds + rank.optimizer_seconds;
    bound.step_seconds = timed ? std::min(bound.step_seconds, seconds) : seconds;
    timed = true;
  }
  return bound;
}

std::int64_t live_peak(const Estimate& e) {
  for (const CategoryLine& line : e.breakdown)
    if (line.category == Category::fragmentation) return e.reserved.point - line.at_peak;
  return e.allocated.point;
}

}  // namespace shardplan
