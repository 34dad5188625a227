// What frameworks add to a step on several GPUs: the slowdown of computation beside collectives,
// hooks, sharded optimizers.
#include <cmath>
#include <functional>

#include "calibrate/calibrate.h"
#include "calibrate/fit.h"
#include "lowering/lower.h"
#include "timing/timeline.h"

namespace shardplan {
namespace {

struct MeasuredStep {
  const Record* record = nullptr;
  Program program;
  double seconds = 0;
};

std::vector<MeasuredStep> steps_of(const std::vector<Record>& records, FrameworkKind framework) {
  std::vector<MeasuredStep> steps;
  for (const Record& r : records) {
    const Plan& plan = r.job.plan;
    const auto seconds = r.measured[index_of(Figure::step_seconds)];
    if (plan.framework.kind != framework || !seconds || plan.cluster.world() == 1) continue;
    steps.push_back({&r, lower(r.job.model, plan, run_segments(r.job.model, plan), 0), *seconds});
  }
  return steps;
}

void fit_steps(const std::string& group, const std::vector<MeasuredStep>& steps,
               const std::vector<double*>& parameters, CalibrationFit& fit) {
  const auto logarithms = [&] {
    std::vector<double> all;
    for (const MeasuredStep& s : steps) {
      const Plan& plan = s.record->job.plan;
      all.push_back(std::log(simulate_time(s.program, plan, fit.rates).step / s.seconds));
    }
    return all;
  };
  if (steps.size() < parameters.size()) return;
  fit_positive(parameters, logarithms);
  fit.quality.push_back({group, steps.size(), mean_error(logarithms())});
}

}  // namespace

void fit_frameworks(const std::vector<Record>& records, CalibrationFit& fit) {
  HostRates& host = fit.rates.host;
  const auto issue = [&](Issue i) { return &host.seconds[static_cast<std::size_t>(i)]; };
  fit_steps("steps under DDP", steps_of(records, FrameworkKind::ddp), {&fit.rates.links.contention},
            fit);
  fit_steps("steps under FSDP2", steps_of(records, FrameworkKind::fsdp2),
            {issue(Issue::hook), issue(Issue::sharded), &host.torch_adam_elements_per_second}, fit);
  fit_steps("steps under DeepSpeed", steps_of(records, FrameworkKind::deepspeed),
            {issue(Issue::engine), &host.deepspeed_adam_elements_per_second}, fit);
}

}  // namespace shardplan
