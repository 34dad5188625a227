#include "questions/anchor.h"

#include <algorithm>
#include <cmath>

#include "questions/estimate_job.h"

namespace shardplan {
namespace {

/// Of a job that no part describes; and what an error counts at most. Both chosen, not fitted: as
/// tests/accuracy/measure/cases_and_records/anchoring.py has them.
constexpr double kJobSpread = 0.02;
constexpr double kMostDeviations = 3;

double step_seconds(const Job& job, const Calibration& calibration) {
  return estimate(job.model, job.plan, calibration, ReservedMemory::ratio).time.step_seconds;
}

/// Measured over estimated bytes of the figure that was passed most; 1 where none was.
double memory_over(const Estimate& e, const MeasuredStep& measured) {
  double most = 1;
  const auto compare = [&](const std::optional<std::int64_t>& bytes, const Range& range,
                           std::int64_t of) {
    if (bytes && of > 0)
      most =
          std::max(most, 1 + static_cast<double>(*bytes - range.point) / static_cast<double>(of));
  };
  compare(measured.allocated, e.allocated, e.allocated.point);
  compare(measured.reserved, e.reserved, e.reserved.point);
  // Contexts and communicators are the same in every run: the allocator's part is what differs.
  compare(measured.device, e.device, e.reserved.point);
  return most;
}

}  // namespace

// Fitted by tests/accuracy/measure/cases_and_records/anchoring.py to half of the groups of runs.
PartSpread part_spread(bool fitted) {
  PartSpread spread{{0.03, 0.12, 0.14, 0.02, 0.10, 0.11}, {0.03, 0.12, 0.13, 0.03, 0.14, 0.09}};
  if (fitted) return spread;
  spread.between_machines[index_of(StepPart::kernels)] = 0.19;
  spread.between_machines[index_of(StepPart::host)] = 0.43;
  spread.between_jobs[index_of(StepPart::kernels)] = 0.02;
  spread.between_jobs[index_of(StepPart::host)] = 0.02;
  return spread;
}

PartSpread part_spread(const Job& job, const Calibration& calibration) {
  /// What drives of nodes read at, over the six of data/hardware/storage.json: 6.5 to 47 GB/s.
  constexpr double kUntoldDrives = 0.66;
  const Cluster& cluster = job.plan.cluster;
  PartSpread spread = part_spread(cluster.gpu.arch == calibration.arch);
  if (!cluster.nvme || !cluster.nvme->read_bandwidth)
    spread.between_machines[index_of(StepPart::drives)] = kUntoldDrives;
  return spread;
}

PartFactors part_shares(const Job& job, const Calibration& calibration) {
  constexpr double kStep = 1.1;
  const double own = step_seconds(job, calibration);
  PartFactors shares{};
  for (std::size_t p = 0; p < kStepParts; ++p) {
    PartFactors slower = kAsFitted;
    slower[p] = kStep;
    Calibration other = calibration;
    other.time = slowed_down(calibration.time, slower);
    shares[p] = std::max(0.0, std::log(step_seconds(job, other) / own) / std::log(kStep));
  }
  return shares;
}

PartFactors explained_by(double ratio, const PartFactors& shares, const PartSpread& spread) {
  double all = kJobSpread * kJobSpread;
  for (std::size_t p = 0; p < kStepParts; ++p)
    all += shares[p] * shares[p] *
           (spread.between_machines[p] * spread.between_machines[p] +
            spread.between_jobs[p] * spread.between_jobs[p]);
  // Further off than machines are: that is the job's, and what it explains is no more than this.
  const double most = kMostDeviations * std::sqrt(all);
  const double error = std::clamp(std::log(ratio), -most, most);
  PartFactors factors = kAsFitted;
  for (std::size_t p = 0; p < kStepParts; ++p)
    factors[p] =
        std::exp(error * shares[p] * spread.between_machines[p] * spread.between_machines[p] / all);
  return factors;
}

PartFactors explained_by_step(const Job& job, const Calibration& calibration, double seconds) {
  const double own = step_seconds(job, calibration);
  const PartFactors shares = part_shares(job, calibration);
  const PartFactors all = explained_by(seconds / own, shares, part_spread(job, calibration));
  double wanted = 0;
  for (std::size_t p = 0; p < kStepParts; ++p) wanted += shares[p] * std::log(all[p]);
  const auto part_of_them = [&](double power) {
    PartFactors factors{};
    for (std::size_t p = 0; p < kStepParts; ++p) factors[p] = std::pow(all[p], power);
    return factors;
  };
  const auto too_far = [&](double power) {
    Calibration other = calibration;
    other.time = slowed_down(calibration.time, part_of_them(power));
    return std::abs(std::log(step_seconds(job, other) / own)) > std::abs(wanted);
  };
  if (!too_far(1)) return all;
  double least = 0, most = 1;
  constexpr int kHalvings = 8;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (least + most) / 2;
    (too_far(middle) ? most : least) = middle;
  }
  return part_of_them(least);
}

Anchor anchor_on(const Job& job, const Calibration& calibration, const MeasuredStep& measured,
                 const std::string& run) {
  require_training(job, "anchor", run);
  const Estimate e = estimate_job(job, calibration);
  const std::string& gpu = job.plan.cluster.gpu.name;
  if (e.time.step_seconds <= 0)
    throw InputError({.file = run,
                      .message = "the rates of " + gpu + " are not known: no step to compare",
                      .expected = "a GPU with rates: `shardplan catalog gpus`"});
  Anchor anchor{.run = run,
                .gpu = gpu,
                .calibration = calibration.name,
                .measured_seconds = measured.seconds,
                .predicted_seconds = e.time.step_seconds};
  anchor.factors = explained_by_step(job, calibration, measured.seconds);
  anchor.memory_over = memory_over(e, measured);
  return anchor;
}

}  // namespace shardplan
