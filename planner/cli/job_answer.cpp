#include "cli/job_answer.h"

#include <nlohmann/json.hpp>

#include "render/cost_text.h"
#include "render/fixes_text.h"
#include "save/estimate.h"

namespace shardplan::cli {

Json to_json(const JobAnswer& answer) {
  Json json = shardplan::to_json(answer.estimate, answer.job);
  json["cost"] = cost_json(answer.cost, answer.job.plan.cluster);
  if (answer.fixes) json["fixes"] = fixes_json(*answer.fixes);
  return json;
}

}  // namespace shardplan::cli
