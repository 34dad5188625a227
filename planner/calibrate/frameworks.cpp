// What frameworks add to a step: the slowdown of computation beside collectives, hooks, sharded
// optimizers, Megatron's modules; and what waiting for each kernel adds.
#include <algorithm>
#include <cmath>
#include <functional>

#include "calibrate/calibrate.h"
#include "calibrate/fit.h"
#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
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

std::vector<MeasuredStep> steps_of(const std::vector<Record>& records, const StepFit* fit) {
  std::vector<MeasuredStep> steps;
  for (const Record& r : records) {
    const auto seconds = r.measured[index_of(Figure::step_seconds)];
    if (planning_of(r.job.plan).fit.get() != fit || !seconds || r.job.plan.cluster.world() == 1)
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
  std::vector<const StepFit*> done;
  for (const FrameworkTraits* framework : all_frameworks()) {
    const StepFit* own = planning_of(framework->kind).fit;
    if (own == nullptr || std::find(done.begin(), done.end(), own) != done.end()) continue;
    done.push_back(own);
    const std::vector<MeasuredStep> steps =
        own->small_steps
            ? steps_where(rows, [own](const Plan& p) { return planning_of(p).fit.get() == own; })
            : steps_of(records, own);
    fit_steps(std::string(own->group), steps, own->rates(fit.rates), fit);
  }
  fit_steps("steps whose launches wait",
            steps_where(rows, [](const Plan& p) { return p.launch_blocking; }),
            {&fit.rates.host.launch_wait}, fit);
}

}  // namespace shardplan
