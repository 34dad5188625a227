// What peft's LoRA trains of each family, by the names of its targets.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "build_testing.h"
#include "json/read.h"

namespace shardplan {
namespace {

Json golden(const char* name) {
  return read_json_file(fmt::format("{}/tests/golden/{}", SHARDPLAN_SOURCE_DIR, name));
}

/// Parameters that train, or -1 where the targets are refused.
std::int64_t trained(const Json& config, const std::string& target) {
  BuildOptions options{.attention = AttentionKind::sdpa};
  options.counts_only = true;
  options.lora.emplace().rank = 8;
  options.lora->targets = {target};
  try {
    return build_model(load_model_config(config, "config.json"), options).trainable_count();
  } catch (const InputError&) {
    return -1;
  }
}

TEST(AdapterCounts, AreThoseOfPeft) {
  const Json configs = golden("family_configs.json"), counts = golden("adapter_counts.json");
  for (const auto& [name, by_target] : counts.at("counts").items())
    for (const auto& [target, count] : by_target.items()) {
      if (target == "default") continue;
      const std::int64_t expected = count.is_null() ? -1 : count.get<std::int64_t>();
      EXPECT_EQ(trained(configs.at(name), target), expected) << name << ' ' << target;
    }
}

}  // namespace
}  // namespace shardplan
