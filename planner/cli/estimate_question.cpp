#include "cli/estimate_question.h"

#include <nlohmann/json.hpp>

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
  JobAnswer a;
  a.job = question.job.load(question.job.merged(Json::object()));
  a.calibration = question.calibration.load_for(a.job);
  a.estimate = estimate_job(a.job, a.calibration);
  a.cost = cost_of(a.job.model, a.job.plan, a.estimate, question.cost);
  return a;
}

}  // namespace shardplan::cli
