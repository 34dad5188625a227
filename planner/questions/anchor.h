// What one measured step of a job explains of the steps of others on the same machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "estimate/anchor.h"
#include "estimate/calibration.h"
#include "load/job.h"

namespace shardplan {

/// A run's median step, and its peaks in bytes where they are known: of the GPU that had most.
struct MeasuredStep {
  double seconds = 0;
  std::optional<std::int64_t> allocated, reserved, device;
};

/// By how much the times of each part differ from what is predicted, as standard deviations of
/// logarithms.
struct PartSpread {
  PartFactors between_machines;  ///< of a machine and framework: alike in all their steps
  PartFactors between_jobs;      ///< on top, from one of their jobs to another
};

/// `fitted`: the job's GPUs are of the kind that the calibration was fitted on.
PartSpread part_spread(bool fitted);

/// Of a job's machine: drives whose rates nobody told are any that nodes have.
PartSpread part_spread(const Job& job, const Calibration& calibration);

/// How the logarithm of a step's time grows with that of each part's: 1 in all, where no part hides
/// another. By StepPart.
PartFactors part_shares(const Job& job, const Calibration& calibration);

/// The likeliest factors of a machine where a step of these shares took `ratio` times what was
/// predicted: each part takes of the difference what it takes of the spread, and the rest is left
/// to the job.
PartFactors explained_by(double ratio, const PartFactors& shares, const PartSpread& spread);

/// The factors of the job's machine where its step took so many seconds: those of explained_by(),
/// or nearer to 1 where what was hidden comes to light and the step would take longer than they
/// explain.
PartFactors explained_by_step(const Job& job, const Calibration& calibration, double seconds);

/// Throws InputError for a job without a time, or that does not train.
Anchor anchor_on(const Job& job, const Calibration& calibration, const MeasuredStep& measured,
                 const std::string& run);

}  // namespace shardplan
