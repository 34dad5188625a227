#include "job/parallel_json.h"

#include <nlohmann/json.hpp>

#include "frameworks/registry.h"

namespace shardplan {

Json parallel_json(const Plan& plan) {
  const Parallel& parallel = plan.parallel;
  Json json = Json::object();
  for (std::size_t i = 0; i < kDegreeNames.size(); ++i) {
    const std::int64_t degree = parallel.*member_of(static_cast<Degree>(i));
    if (degree != 1) json[std::string(kDegreeNames[i])] = degree;
  }
  if (parallel.expert_tensor != (traits_of(plan).divides_experts ? parallel.tensor : 1))
    json["expert_tensor"] = parallel.expert_tensor;
  if (parallel.expert_imbalance != 1) json["expert_imbalance"] = parallel.expert_imbalance;
  if (parallel.tensor > 1) json["sequence_parallel"] = parallel.sequence_parallel;
  if (parallel.pipeline == 1) return json;
  json["schedule"] = name_of(parallel.schedule);
  if (parallel.balance != StageBalance::blocks) json["balance"] = name_of(parallel.balance);
  if (!parallel.stage_layers.empty()) json["stage_layers"] = parallel.stage_layers;
  return json;
}

}  // namespace shardplan
