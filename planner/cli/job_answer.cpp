#include "cli/job_answer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "questions/recipe_price.h"
#include "render/cost_text.h"
#include "render/estimate_text.h"
#include "render/fit_text.h"
#include "render/fixes_text.h"
#include "render/serving_text.h"
#include "save/estimate.h"

namespace shardplan::cli {

JobAnswer answer_job(Job job, Calibration calibration, const CostTerms& terms, Estimate estimate) {
  JobAnswer a;
  a.job = std::move(job);
  a.calibration = std::move(calibration);
  a.estimate = std::move(estimate);
  if (auto warning = recipe_that_loses(a.job, a.calibration, a.estimate))
    a.job.diagnostics.push_back(std::move(*warning));
  a.cost = cost_of(a.job.model, a.job.plan, a.estimate, terms);
  if (a.estimate.serving) a.serving = serving_choices(a.job, a.calibration, terms);
  return a;
}

std::string text_of(const JobAnswer& a) {
  if (a.estimate.serving)
    return serving_text(a.estimate, a.job, a.serving, a.fixes.value_or(std::vector<Fix>()),
                        a.calibration);
  return a.fixes ? fit_text(a.estimate, a.job, *a.fixes, a.calibration, a.cost)
                 : estimate_text(a.estimate, a.job, a.calibration, a.cost);
}

Json to_json(const JobAnswer& answer) {
  Json json = shardplan::to_json(answer.estimate, answer.job);
  json["cost"] = cost_json(answer.cost, answer.job.plan.cluster);
  if (!answer.serving.empty()) json["serving_choices"] = serving_json(answer.serving);
  if (answer.fixes) json["fixes"] = fixes_json(*answer.fixes);
  return json;
}

}  // namespace shardplan::cli
