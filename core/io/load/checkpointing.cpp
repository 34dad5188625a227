#include "load/checkpointing.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "load/options.h"
#include "options/choices.h"
#include "options/tables.h"

namespace shardplan {
namespace {

constexpr const char* kKey = "checkpointing";
constexpr const char* kWords =
    "a string: none, selective, full, selective_op:2, blocks:8 (the first eight), blocks/2 (each "
    "second), with +offload behind them; or an object";

/// "blocks/2+offload" as the object that says the same; null where it is no such word.
Json object_of(std::string_view word) {
  constexpr std::string_view kOffload = "+offload";
  Json object = Json::object();
  if (word.ends_with(kOffload)) {
    object["offload"] = true;
    word.remove_suffix(kOffload.size());
  }
  const std::size_t mark = word.find_first_of(":/");
  const std::string_view name = word.substr(0, mark);
  object["policy"] = name;
  if (mark == std::string_view::npos) return object;
  const std::string_view digits = word.substr(mark + 1);
  std::int64_t number = 0;
  const auto end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != end) return {};
  const bool counts = word[mark] == ':' && name != name_of(Checkpointing::selective_op);
  object[counts ? "count" : "every"] = number;
  return object;
}

/// Numbers that a policy has no use for, or that it wants.
void check_share(const ObjectReader& o, Plan& plan) {
  CheckpointShare& share = plan.checkpoint_share;
  const Checkpointing how = plan.checkpointing;
  const auto unused = [&](std::string_view key) {
    o.fail(key, fmt::format("is nothing to policy '{}'", name_of(how)),
           "policy blocks, or none of it");
  };
  const bool some = how == Checkpointing::blocks;
  const bool products = how == Checkpointing::selective_op;
  if (share.count > 0 && !some) unused("count");
  if (share.every > 0 && !some && !products) unused("every");
  if (some && share.every == 0 && share.count == 0)
    o.fail("policy", "blocks, and no word of which ones",
           "\"every\": 2, each second one, or \"count\": 8, the first eight");
  if (some && share.every > 0 && share.count > 0)
    o.fail("count", "beside every: they are two ways to choose blocks", "one of them");
  if (products && share.every == 0) share.every = kUsualProductShare;
  if (products && share.every == 1)
    o.fail("every", "1: no product would be kept", "2 or more, or policy full");
}

void read_object(ObjectReader o, Plan& plan) {
  plan.checkpoint_share = {};
  read_options(o, checkpointing_table(), plan);
  if (!o.has("policy")) o.missing("policy", "none, selective, full, selective_op or blocks");
  o.finish();
  check_share(o, plan);
}

}  // namespace

void read_checkpointing(ObjectReader& job, Plan& plan) {
  const Json* said = job.find(kKey);
  if (said == nullptr) return;
  if (said->is_object()) {
    read_object(ObjectReader(*said, job.file(), job.path_of(kKey)), plan);
    return;
  }
  if (!said->is_string()) job.fail(kKey, "found " + describe(*said), kWords);
  const std::string word = said->get<std::string>();
  if (word.find_first_of(":/+") == std::string::npos && word != name_of(Checkpointing::blocks) &&
      word != name_of(Checkpointing::selective_op)) {
    const auto how = read_as<Checkpointing>(job, info_of(job_option_table(), kKey));
    plan.checkpointing = how.value_or(plan.checkpointing);
    return;
  }
  const Json object = object_of(word);
  if (object.is_null()) job.fail(kKey, fmt::format("found '{}'", word), kWords);
  read_object(ObjectReader(object, job.file(), job.path_of(kKey)), plan);
}

CheckpointChoice checkpointing_of(const std::string& word, const std::string& file,
                                  const std::string& key) {
  const Json json{{kKey, word}};
  ObjectReader reader(json, file, key);
  Plan plan;
  read_checkpointing(reader, plan);
  return plan.checkpoint_choice();
}

}  // namespace shardplan
