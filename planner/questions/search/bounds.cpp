#include "questions/search/bounds.h"

namespace shardplan {
namespace {

std::int64_t excess(const ResourceVerdict& r) {
  return r.fit == Fit::does_not_fit && r.available ? r.needed - *r.available : 0;
}

}  // namespace

StatesBound states_bound(const Model& model, const SearchSpace& space, Plan plan,
                         const Calibration& calibration) {
  for (std::size_t a = space.states_fixed; a < space.axes.size(); ++a) space.axes[a].apply(plan, 0);
  plan.workload.gradient_accumulation = 1;  // gradients of several passes take more of the host
  const Estimate e = estimate(model, plan, calibration, ReservedMemory::ratio);
  StatesBound bound;
  bound.parameter_bytes = e.breakdown[index_of(Category::parameters)].resident;
  bound.resident_bytes = e.phases[static_cast<std::size_t>(Phase::step)].end;
  bound.overhead_bytes = e.breakdown[index_of(Category::cuda_context)].resident +
                         e.breakdown[index_of(Category::nccl)].resident;
  bound.host = e.verdict.host.fit;
  bound.nvme = e.verdict.nvme.fit;
  bound.off_gpu_excess = excess(e.verdict.host) + excess(e.verdict.nvme);
  bound.optimizer_seconds = e.time.optimizer_seconds;
  return bound;
}

WorkBound work_bound(const Plan& plan, const Passes& passes, const StatesBound& states,
                     const Calibration& calibration) {
  const LeastWork work = least_work(plan, passes, calibration.time);
  WorkBound bound;
  bound.allocated_bytes = checked_add(states.resident_bytes, work.activation_bytes);
  if (work.compute_seconds > 0)
    bound.step_seconds = work.compute_seconds + states.optimizer_seconds;
  return bound;
}

}  // namespace shardplan
