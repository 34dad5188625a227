#include "cli/estimate_question.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cost_options.h"
#include "questions/estimate_job.h"

namespace shardplan::cli {

void EstimateQuestion::add_to(CLI::App& command) {
  job.add_files(command);
  job.add_flags(command);
  calibration.add_flags(command);
  add_cost_flags(command, cost);
}

JobAnswer answer(const EstimateQuestion& question) {
  Job job = question.job.load(question.job.merged());
  Calibration calibration = question.calibration.load_for(job);
  Estimate estimate = estimate_job(job, calibration);
  return answer_job(std::move(job), std::move(calibration), question.cost, std::move(estimate));
}

}  // namespace shardplan::cli
