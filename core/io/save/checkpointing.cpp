#include "save/checkpointing.h"

#include <fmt/format.h>

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

std::string checkpointing_word(const CheckpointChoice& choice) {
  const CheckpointShare& share = choice.share;
  std::string word(name_of(choice.how));
  const char mark = choice.how == Checkpointing::selective_op ? ':' : '/';
  if (share.every > 0) word += fmt::format("{}{}", mark, share.every);
  if (share.count > 0) word += fmt::format(":{}", share.count);
  return share.offload ? word + "+offload" : word;
}

}  // namespace shardplan
