#include "save/checkpointing.h"

#include <nlohmann/json.hpp>

namespace shardplan {

Json checkpointing_json(const Plan& plan) {
  const CheckpointShare& share = plan.checkpoint_share;
  const std::string_view name = name_of(plan.checkpointing);
  if (share == CheckpointShare{}) return name;
  Json json{{"policy", name}};
  if (share.every > 0) json["every"] = share.every;
  if (share.count > 0) json["count"] = share.count;
  if (share.offload) json["offload"] = true;
  return json;
}

}  // namespace shardplan
