// The tables of options: what they say of themselves, and what is made from them.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/diagnostic.h"
#include "estimate/passes.h"
#include "frameworks/deepspeed/auto_resolver.h"
#include "frameworks/deepspeed/config_table.h"
#include "frameworks/registry.h"
#include "json/document.h"
#include "load/ds_config/schema.h"
#include "load/options.h"
#include "options/choices.h"
#include "options/groups.h"
#include "options/member.h"
#include "options/tables.h"
#include "options/words.h"
#include "save/options.h"

namespace shardplan {
namespace {

/// A table of a made-up framework part: what adding an option takes.
struct Wheel {
  std::int64_t spokes = 32;
  bool tubeless = false;
  std::optional<DType> rim;
  Checkpointing brake = Checkpointing::selective;
  double width = 1.5;
};

constexpr std::array kWheelOptions{
    option<&Wheel::spokes>({.key = "spokes", .help = "how many", .integers = {1, 64}}),
    option<&Wheel::tubeless>({.key = "tubeless"}),
    option<&Wheel::rim>({.key = "rim", .choices = kStateTypes}),
    option<&Wheel::brake>({.key = "brake", .choices = kCheckpointings, .changes_passes = true}),
    option<&Wheel::width>(
        {.key = "width", .unit = "in", .numbers = {1, 3}, .changes_passes = true},
        {.open = [](const Wheel& w) -> OptionValue { return w.tubeless ? 2.5 : 1.25; }}),
};
constexpr OptionTable<Wheel> kWheel{"wheel", "Bicycles", kWheelOptions};

Wheel read(const char* text) {
  const Json json = Json::parse(text);
  ObjectReader reader(json, "job.json", "wheel");
  Wheel wheel;
  read_options(reader, kWheel, wheel);
  reader.finish();
  return wheel;
}

std::string complaint(const char* text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Options, OneEntryIsEnoughToReadAndToWrite) {
  const Wheel wheel =
      read(R"({"spokes": 20, "tubeless": true, "rim": "bf16", "brake": "full", "width": 2})");
  EXPECT_EQ(wheel.spokes, 20);
  EXPECT_TRUE(wheel.tubeless);
  EXPECT_EQ(wheel.rim, DType::bf16);
  EXPECT_EQ(wheel.brake, Checkpointing::full);
  Json json = Json::object();
  write_options(json, kWheel, wheel);
  EXPECT_EQ(json.dump(),
            R"({"spokes":20,"tubeless":true,"rim":"bf16","brake":"full","width":2.0})");
}

TEST(Options, WhatIsLeftOpenFollowsFromTheStructureOrARule) {
  EXPECT_EQ(read("{}").spokes, 32);
  EXPECT_EQ(read("{}").rim, std::nullopt);
  EXPECT_EQ(read("{}").width, 1.25);
  EXPECT_EQ(read(R"({"tubeless": true, "width": null})").width, 2.5);
}

TEST(Options, ErrorsNameTheKeyWhatWasExpectedAndTheNearestName) {
  EXPECT_EQ(complaint(R"({"spokes": 65})"),
            "job.json: wheel.spokes: found 65; expected an integer from 1 to 64");
  EXPECT_EQ(complaint(R"({"brake": "selectiv"})"),
            "job.json: wheel.brake: unknown value 'selectiv'; expected one of none, selective, "
            "full; did you mean 'selective'?");
  EXPECT_EQ(complaint(R"({"spoke": 1})"),
            "job.json: wheel.spoke: unknown key; expected one of brake, rim, spokes, tubeless, "
            "width; did you mean 'spokes'?");
}

TEST(Options, HelpAndDocumentationListTheChoices) {
  EXPECT_EQ(
      help_of(info_of(*traits_of(FrameworkKind::megatron).options.get(), "grad_reduce_dtype")),
      "type of the gradient buffers: fp32, bf16 or fp16");
  const std::string table = markdown_of(listed("wheel", kWheel));
  EXPECT_NE(table.find("| `spokes` |  | how many | 32 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| `brake` |  | : none, selective or full | `selective` |"),
            std::string::npos)
      << table;
}

TEST(Options, OnlyMarkedOnesAreInTheKeyOfAPass) {
  std::vector<std::int64_t> numbers;
  add_pass_numbers(kWheel, Wheel{}, numbers);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{1, 1'500'000'000}));
}

TEST(Options, PlansShareAPassWhereMarkedOptionsAreTheSame) {
  Plan plan;
  plan.framework.kind = FrameworkKind::megatron;
  const auto key_with = [&](auto change) {
    Plan changed = plan;
    change(changed);
    return pass_key(changed);
  };
  const PassKey key = pass_key(plan);
  EXPECT_EQ(key, key_with([](Plan& p) { p.workload.gradient_accumulation = 7; }));
  EXPECT_EQ(key, key_with([](Plan& p) { p.framework.megatron.bucket_size = 1000; }));
  EXPECT_EQ(key, key_with([](Plan& p) { p.framework.fsdp2.cpu_offload = true; }));
  EXPECT_NE(key, key_with([](Plan& p) { p.framework.megatron.tp_comm_overlap = true; }));
  EXPECT_NE(key, key_with([](Plan& p) { p.parallel.expert_imbalance = 1.25; }));
  EXPECT_NE(key, key_with([](Plan& p) { p.checkpointing = Checkpointing::full; }));
  EXPECT_NE(key, key_with([](Plan& p) { p.workload.micro_batch = 2; }));
  EXPECT_NE(key, key_with([](Plan& p) { p.launch_blocking = true; }));
}

/// One source of defaults: the structure, for the newest version.
TEST(Options, KeysOfADsConfigHaveTheStructuresDefaults) {
  const DeepSpeedOptions newest;
  const Json file = read_json_file(SHARDPLAN_SOURCE_DIR "/data/deepspeed/schema.json");
  std::map<std::string, Json> keys;
  for (const Json& key : file.at("keys")) keys[key.at("path")] = key;
  for (const Option<DeepSpeedOptions>& option : kDsConfigTable.options) {
    const std::string path(option.info.key);
    ASSERT_TRUE(keys.contains(path)) << path;
    EXPECT_TRUE(keys[path].value("default", Json()).is_null()) << path;
    const DsNode* node = ds_schema().find(path);
    ASSERT_NE(node, nullptr) << path;
    const OptionValue value = option.access.get(newest);
    if (is_said(value) && value != OptionValue(std::string())) {
      EXPECT_EQ(node->default_at(newest.version), json_of(option.info, value)) << path;
    }
  }
}

TEST(Options, AnEarlierSpellingIsRead) {
  ASSERT_NE(find_choice(kAutoResolvers, "nobody"), nullptr);
  EXPECT_EQ(find_choice(kAutoResolvers, "nobody")->name, "none");
}

/// A flag may belong to several frameworks, if it sets the same key to the same kind of value.
TEST(Options, EveryKeyIsSaidOnceAndEveryFlagMeansOneThing) {
  std::set<std::string> names;
  std::map<std::string, std::pair<std::string, OptionKind>> flags;
  for (const OptionGroup& group : all_option_groups()) {
    EXPECT_TRUE(names.insert(std::string(group.name)).second) << group.name;
    std::set<std::string_view> keys;
    for (const ListedOption& option : group.options) {
      EXPECT_TRUE(keys.insert(option.info->key).second) << group.name << option.info->key;
      EXPECT_FALSE(option.info->help.empty()) << group.name << option.info->key;
      if (option.info->flag.empty()) continue;
      const auto place = std::pair(std::string(group.path) + "." + std::string(option.info->key),
                                   option.info->kind);
      const auto [known, is_new] = flags.emplace(option.info->flag, place);
      EXPECT_EQ(known->second, place) << option.info->flag;
    }
  }
}

/// The groups that a plan's kind of work and framework have.
std::set<std::string> groups_of(const Plan& plan) {
  std::set<std::string> names;
  for (const auto& [group, scope] : all_scoped_options())
    if (applies(scope, plan)) names.insert(std::string(group.name));
  return names;
}

TEST(Options, BelongToKindsOfWorkAndToFrameworks) {
  Plan plan;
  std::set<std::string> names = groups_of(plan);  // DeepSpeed trains
  for (const char* name : {"training", "lora", "deepspeed", "moe", "optimizer", "parallel"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const char* name : {"inference", "engine", "rlhf", "rollout", "hybrid_engine", "fsdp2"})
    EXPECT_FALSE(names.contains(name)) << name;
  plan.workload.kind = WorkKind::rlhf;
  EXPECT_TRUE(groups_of(plan).contains("hybrid_engine"));
  EXPECT_FALSE(groups_of(plan).contains("training"));
  plan.framework.kind = FrameworkKind::fsdp2;
  names = groups_of(plan);
  for (const char* name : {"rlhf", "rollout", "fsdp2", "lora"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const char* name : {"hybrid_engine", "moe", "deepspeed"})
    EXPECT_FALSE(names.contains(name)) << name;
  plan.workload.kind = WorkKind::inference;
  names = groups_of(plan);
  EXPECT_TRUE(names.contains("engine"));
  for (const char* name : {"lora", "optimizer", "checkpointing", "rollout"})
    EXPECT_FALSE(names.contains(name)) << name;
}

/// What a table names by hand must be what the enumeration has.
TEST(Options, ValuesOfChoicesAreDistinct) {
  for (const OptionGroup& group : all_option_groups())
    for (const ListedOption& option : group.options) {
      std::set<std::int64_t> values;
      for (const NamedValue& choice : option.info->choices)
        EXPECT_TRUE(values.insert(choice.value).second) << option.info->key << choice.name;
    }
}

/// Every option of a framework that is written is read back as it was.
TEST(Options, FrameworksReadWhatTheyWrite) {
  for (const FrameworkTraits* traits : all_frameworks()) {
    Framework framework;
    framework.kind = traits->kind;
    Json json = Json::object();
    write_options(json, *traits->options.get(), framework);
    Framework again;
    again.kind = traits->kind;
    ObjectReader reader(json, "job.json", "framework");
    read_options(reader, *traits->options.get(), again);
    reader.finish();
    Json second = Json::object();
    write_options(second, *traits->options.get(), again);
    EXPECT_EQ(json, second) << traits->name.get();
  }
}

}  // namespace
}  // namespace shardplan
