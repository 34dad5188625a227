// The estimate of a job of any kind, and which questions can be asked of which.
#pragma once

#include <string_view>

#include "estimate/detail.h"
#include "load/job.h"

namespace shardplan {

/// The name used in job files.
constexpr std::string_view name_of(WorkKind kind) {
  return kind == WorkKind::train ? "train" : kind == WorkKind::inference ? "inference" : "rlhf";
}

Estimate estimate_job(const Job& job, const Calibration& calibration);
/// Ranks that differ on all threads of the machine.
DetailedEstimate estimate_job_in_detail(const Job& job, const Calibration& calibration);

/// Throws InputError for a job that an engine serves: `command` shows a step, and it has none.
void require_steps(const Job& job, std::string_view command, const std::string& file);

/// Throws InputError unless the job trains one model: `command` asks about nothing else.
void require_training(const Job& job, std::string_view command, const std::string& file);

}  // namespace shardplan
