// What peft's LoRA trains of each family, by the names of its targets.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "build_testing.h"
#include "json/document.h"
#include "model/peft_targets.h"

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

/// What is not followed, by type of network and target ("*": each).
struct Exception {
  const char *model_type, *target;
};
constexpr Exception kNotFollowed[] = {
    // peft refuses Gemma4ClippableLinear, which the towers have under the names of the text's.
    {"gemma4", "q_proj"},
    {"gemma4", "k_proj"},
    {"gemma4", "v_proj"},
    {"gemma4", "o_proj"},
    {"gemma4", "gate_proj"},
    {"gemma4", "up_proj"},
    {"gemma4", "down_proj"},
    // Convolutions over patches, which are no linears.
    {"qwen2_vl", "proj"},
    {"qwen2_5_vl", "proj"},
    {"qwen3_vl", "proj"},
    {"qwen3_vl_moe", "proj"},
    {"qwen3_5", "proj"},
    {"qwen3_5_moe", "proj"},
    // Linears of towers that no forward pass of the network uses.
    {"gemma3", "all-linear"},
    {"paligemma", "all-linear"},
    {"llava", "all-linear"},
    {"gemma4", "all-linear"},
    {"mllama", "all-linear"},
    {"siglip", "head"},
    {"deberta-v2", "*"},
};

bool is_followed(const Json& config, const std::string& target) {
  const std::string type = config.at("model_type");
  return std::none_of(std::begin(kNotFollowed), std::end(kNotFollowed), [&](const Exception& e) {
    return type == e.model_type && (target == e.target || std::string("*") == e.target);
  });
}

TEST(AdapterCounts, AreThoseOfPeft) {
  const Json configs = golden("family_configs.json"), counts = golden("adapter_counts.json");
  for (const auto& [name, by_target] : counts.at("counts").items())
    for (const auto& [target, count] : by_target.items()) {
      if (target == "default" || !is_followed(configs.at(name), target)) continue;
      const std::int64_t expected = count.is_null() ? -1 : count.get<std::int64_t>();
      EXPECT_EQ(trained(configs.at(name), target), expected) << name << ' ' << target;
    }
}

TEST(AdapterCounts, OfDefaultTargetsAreThoseOfPeft) {
  const Json configs = golden("family_configs.json"), counts = golden("adapter_counts.json");
  for (const auto& [name, by_target] : counts.at("counts").items()) {
    const Json& config = configs.at(name);
    const auto targets = default_targets(config.at("model_type").get<std::string>());
    const Json& expected = by_target.at("default");
    if (config.at("model_type") == "gemma4") continue;  // an expression that leaves towers out
    ASSERT_EQ(targets.empty(), expected.is_null()) << name;
    if (targets.empty()) continue;
    std::int64_t sum = 0;
    for (const std::string& target : targets) sum += trained(config, target);
    EXPECT_EQ(sum, expected.get<std::int64_t>()) << name;
  }
}

}  // namespace
}  // namespace shardplan
