// What the host takes to issue a step, from runs too small for the GPU to matter, and how much
// faster products are within a step than back to back.
#include <cmath>

#include "calibrate/calibrate.h"
#include "calibrate/fit.h"
#include "frameworks/planning_registry.h"
#include "lowering/lower.h"
#include "timing/kernel_time.h"

namespace shardplan {
namespace {

/// How many kernels of each kind of issue a phase starts; calls that start nothing apart.
struct Issues {
  std::array<double, kIssues> started{};
  std::array<double, kIssues> empty{};
};

/// Calls visit(phase, kernel, times) for every kernel of a step.
template <typename Visit>
void for_each_kernel_of_step(const Program& program, Visit&& visit) {
  std::size_t phase = 0;
  for_each_event(program, [&](const Event& e, std::int64_t times) {
    if (e.kind == Event::Kind::begin_phase) phase = static_cast<std::size_t>(e.phase);
    if (e.kind != Event::Kind::compute) return;
    for_each_kernel(program, e,
                    [&](const Kernel& k) { visit(phase, k, static_cast<double>(times)); });
  });
}

std::array<Issues, 3> issues_of(const Program& program) {
  std::array<Issues, 3> phases;
  for_each_kernel_of_step(program, [&](std::size_t phase, const Kernel& k, double times) {
    auto& count = k.kind == KernelKind::none ? phases[phase].empty : phases[phase].started;
    count[static_cast<std::size_t>(k.issue)] += times * k.calls;
  });
  return phases;
}

Program program_of(const Job& job) {
  return lower(job.model, job.plan, run_segments(job.model, job.plan), 0);
}

}  // namespace

void fit_burst(const std::vector<HostRow>& rows, const Gpu& gpu, CalibrationFit& fit) {
  double& burst = fit.rates.kernels.product.burst;
  std::vector<double> back_to_back, measured;
  for (const HostRow& row : rows) {
    const DType type = row.job.plan.precision.compute;
    constexpr double kLong = 10e-3;  // shorter ones do not heat the chip
    const bool eager = planning_of(row.job.plan).fits_host;
    if (!eager || row.product_seconds < kLong || size_of(type) != 2) continue;
    double seconds = 0;
    for_each_kernel_of_step(program_of(row.job), [&](std::size_t, const Kernel& k, double times) {
      if (k.kind == KernelKind::product)
        seconds += times * kernel_seconds(k, peaks_of(gpu, type), fit.rates.kernels);
    });
    back_to_back.push_back(seconds / burst);
    measured.push_back(row.product_seconds);
  }
  if (measured.empty()) return;
  const auto logarithms = [&] {
    std::vector<double> all;
    for (std::size_t i = 0; i < measured.size(); ++i)
      all.push_back(std::log(burst * back_to_back[i] / measured[i]));
    return all;
  };
  fit_positive({&burst}, logarithms);
  fit.quality.push_back({"all products of a step", measured.size(), mean_error(logarithms())});
}

void fit_host(const std::vector<HostRow>& rows, CalibrationFit& fit) {
  std::vector<const HostRow*> issued;  // one process that runs ahead of its GPU
  for (const HostRow& row : rows)
    if (planning_of(row.job.plan).fits_host && !row.job.plan.launch_blocking)
      issued.push_back(&row);
  if (issued.empty()) return;
  std::vector<std::array<Issues, 3>> counts;
  for (const HostRow* row : issued) counts.push_back(issues_of(program_of(row->job)));
  HostRates& host = fit.rates.host;
  const auto logarithms = [&] {
    std::vector<double> all;
    for (std::size_t r = 0; r < issued.size(); ++r)
      for (std::size_t phase = 0; phase < 3; ++phase) {
        if (issued[r]->seconds[phase] <= 0) continue;
        double seconds = host.phase_seconds;
        for (std::size_t i = 0; i < kIssues; ++i) {
          const double empty = i <= static_cast<std::size_t>(Issue::autograd) ? host.empty : 1;
          seconds +=
              host.seconds[i] * (counts[r][phase].started[i] + empty * counts[r][phase].empty[i]);
        }
        all.push_back(std::log(seconds / issued[r]->seconds[phase]));
      }
    return all;
  };
  fit_positive(
      {&host.seconds[static_cast<std::size_t>(Issue::python)],
       &host.seconds[static_cast<std::size_t>(Issue::nested)],
       &host.seconds[static_cast<std::size_t>(Issue::autograd)],
       &host.seconds[static_cast<std::size_t>(Issue::inner)],
       &host.seconds[static_cast<std::size_t>(Issue::linear)],
       &host.seconds[static_cast<std::size_t>(Issue::linear_node)],
       &host.seconds[static_cast<std::size_t>(Issue::checkpoint)],
       &host.seconds[static_cast<std::size_t>(Issue::recompute)],
       &host.seconds[static_cast<std::size_t>(Issue::listed)],
       &host.seconds[static_cast<std::size_t>(Issue::loop)], &host.empty, &host.phase_seconds},
      logarithms);
  fit.quality.push_back(
      {"host, phases of small steps", logarithms().size(), mean_error(logarithms())});
}

}  // namespace shardplan
