// What frameworks add to a step: the slowdown of computation beside collectives, hooks, sharded
// optimizers, Megatron's modules; and what waiting for each kernel adds.
#include <cmath>
#include <functional>

#include "calibrate/calibrate.h"
#include "calibrate/fit.h"
#include "lowering/lower.h"
#include "timing/timeline.h"

namespace shardplan {
namespace {

struct MeasuredStep {
  const Plan* plan = nullptr;
  Program program;
  double seconds = 0;
};

MeasuredStep step_of(const Job& job, double seconds) {
  return {&job.plan, lower(job.model, job.plan, run_segments(job.model, job.plan), 0), seconds};
}

std::vector<MeasuredStep> steps_of(const std::vector<Record>& records, FrameworkKind framework) {
  std::vector<MeasuredStep> steps;
  for (const Record& r : records) {
    const auto seconds = r.measured[index_of(Figure::step_seconds)];
    if (r.job.plan.framework.kind != framework || !seconds || r.job.plan.cluster.world() == 1)
      continue;
    steps.push_back(step_of(r.job, *seconds));
  }
  return steps;
}

std::vector<MeasuredStep> steps_where(const std::vector<HostRow>& rows,
                                      const std::function<bool(const Plan&)>& wanted) {
  std::vector<MeasuredStep> steps;
  for (const HostRow& row : rows)
    if (row.step_seconds > 0 && wanted(row.job.plan))
      steps.push_back(step_of(row.job, row.step_seconds));
  return steps;
}

void fit_steps(const std::string& group, const std::vector<MeasuredStep>& steps,
               const std::vector<double*>& parameters, CalibrationFit& fit) {
  const auto logarithms = [&] {
    std::vector<double> all;
    for (const MeasuredStep& s : steps)
      all.push_back(std::log(simulate_time(s.program, *s.plan, fit.rates).step / s.seconds));
    return all;
  };
  if (steps.size() < parameters.size()) return;
  fit_positive(parameters, logarithms);
  fit.quality.push_back({group, steps.size(), mean_error(logarithms())});
}

}  // namespace

void fit_frameworks(const std::vector<Record>& records, const std::vector<HostRow>& rows,
                    CalibrationFit& fit) {
  HostRates& host = fit.rates.host;
  const auto issue = [&](Issue i) { return &host.seconds[static_cast<std::size_t>(i)]; };
  fit_steps("steps under DDP", steps_of(records, FrameworkKind::ddp), {&fit.rates.links.contention},
            fit);
  fit_steps("steps under FSDP2", steps_of(records, FrameworkKind::fsdp2),
            {issue(Issue::hook), issue(Issue::sharded), &host.torch_adam_elements_per_second}, fit);
  fit_steps("steps under DeepSpeed", steps_of(records, FrameworkKind::deepspeed),
            {issue(Issue::engine), &host.deepspeed_adam_elements_per_second}, fit);
  fit_steps(
      "small steps under Megatron Core",
      steps_where(rows, [](const Plan& p) { return p.framework.kind == FrameworkKind::megatron; }),
      {issue(Issue::module)}, fit);
  fit_steps("steps whose launches wait",
            steps_where(rows, [](const Plan& p) { return p.launch_blocking; }), {&host.launch_wait},
            fit);
}

}  // namespace shardplan
