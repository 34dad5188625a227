#include "questions/estimate_job.h"

#include <fmt/format.h>

#include "estimate/rlhf.h"
#include "questions/workers.h"

namespace shardplan {

Estimate estimate_job(const Job& job, const Calibration& calibration) {
  return job.rlhf ? estimate_rlhf(*job.rlhf, calibration)
                  : estimate(job.model, job.plan, calibration);
}

DetailedEstimate estimate_job_in_detail(const Job& job, const Calibration& calibration) {
  if (job.rlhf) return estimate_in_detail(*job.rlhf, calibration);
  constexpr unsigned kAll = 0;
  return estimate_in_detail(job.model, job.plan, calibration,
                            [](std::size_t count, const std::function<void(std::size_t)>& work) {
                              for_each_index(count, kAll, work);
                            });
}

void require_steps(const Job& job, std::string_view command, const std::string& file) {
  if (!job.plan.workload.generation.engine) return;
  throw InputError({.file = file,
                    .key = "workload.engine",
                    .message = fmt::format("'{}' shows a step, and an engine has none", command),
                    .expected = "shardplan fit, estimate, compare or max; or no engine"});
}

void require_training(const Job& job, std::string_view command, const std::string& file) {
  const WorkKind kind = job.plan.workload.kind;
  if (kind == WorkKind::train) return;
  const bool inference = kind == WorkKind::inference;
  throw InputError(
      {.file = file,
       .key = "workload.kind",
       .message = fmt::format("'{}' is about training one model, and this job's kind is {}",
                              command, name_of(kind)),
       .expected = inference ? "shardplan estimate, fit, or max --of batch or prompt_length"
                             : "shardplan estimate or fit"});
}

}  // namespace shardplan
