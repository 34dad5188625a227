// The built-in models: every entry builds, has the published number of parameters, and is found
// under each of its names.
#include "load/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <regex>

#include "base/nearest.h"
#include "embedded/files.h"
#include "embedded/json.h"
#include "load/model.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"

namespace shardplan {
namespace {

const Json& totals() {
  static const Json json =
      read_json_file(SHARDPLAN_SOURCE_DIR "/tests/golden/parameter_totals.json");
  return json.at("totals");
}

Json config_of(const Json& expected) {
  const auto entry = find_model(expected.at("model").get<std::string>());
  if (!entry) return {};
  Json config = entry->config;
  if (expected.contains("architectures")) config["architectures"] = expected.at("architectures");
  return config;
}

class CatalogTotals : public testing::TestWithParam<std::size_t> {};

TEST_P(CatalogTotals, AreThePublishedOnes) {
  const Json& expected = totals().at(GetParam());
  const Json config = config_of(expected);
  ASSERT_TRUE(config.is_object()) << expected.dump();
  const BuildOptions options{.counts_only = true};
  const Model model = build_model(load_model_config(config, expected.dump()), options);
  EXPECT_EQ(model.parameter_count(), expected.at("parameters").get<std::int64_t>());
}

std::vector<std::size_t> indices() {
  std::vector<std::size_t> out(totals().size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  return out;
}

std::string test_name(const testing::TestParamInfo<std::size_t>& info) {
  const Json& j = totals().at(info.param);
  std::string name = j.at("model").get<std::string>();
  if (j.contains("architectures")) name += "_" + j.at("architectures").at(0).get<std::string>();
  return std::regex_replace(name, std::regex("[^A-Za-z0-9]"), "_");
}

INSTANTIATE_TEST_SUITE_P(Golden, CatalogTotals, testing::ValuesIn(indices()), test_name);

TEST(Catalog, EveryEntryHasAnExpectedTotalAndEqualsIt) {
  std::map<std::string, std::int64_t> expected;
  for (const Json& j : totals())
    if (!j.contains("architectures"))
      expected[j.at("model").get<std::string>()] = j.at("parameters").get<std::int64_t>();
  const auto all = catalog_models();
  EXPECT_EQ(all.size(), expected.size());
  for (const CatalogModel& entry : all)
    EXPECT_EQ(entry.parameters, expected[entry.name]) << entry.name;
}

TEST(Catalog, ANameMeansOneEntryOnly) {
  std::map<std::string, std::string> owner;
  for (const CatalogModel& entry : catalog_models()) {
    std::vector<std::string> names = entry.aliases;
    names.push_back(entry.name);
    for (const std::string& name : names) {
      const auto found = find_model(name);
      ASSERT_TRUE(found) << name;
      EXPECT_EQ(found->name, entry.name) << name;
      // Points tell opt-1.3b from opt-13b; beyond them, names are compared as find_model() does.
      std::string key = name.substr(name.rfind('/') + 1);
      if (key.find('.') == std::string::npos) key = normalized(key);
      const auto [at, fresh] = owner.emplace(key, entry.name);
      EXPECT_EQ(at->second, entry.name) << name;
    }
  }
}

TEST(Catalog, PublishedElementCountsDifferOnlyByWhatTheEntryExplains) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with("models/")) continue;
    const Json document = unpacked(file.bytes);
    for (const Json& entry : document.at("models")) {
      if (!entry.contains("published")) continue;
      const Json& published = entry.at("published");
      EXPECT_EQ(entry.at("parameters").get<std::int64_t>() +
                    published.value("beyond_parameters", std::int64_t{0}),
                published.at("elements").get<std::int64_t>())
          << entry.at("name");
      EXPECT_EQ(published.contains("beyond_parameters"), published.contains("because"));
    }
  }
}

TEST(Catalog, HasNetworksWithTheirTowers) {
  const auto entry = find_model("google/gemma-3-4b-it");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->name, "gemma-3-4b-pt");
  const Model model = load_model("gemma-3-4b-pt", {}, {});
  EXPECT_TRUE(model.facts.image.has_tower);
  EXPECT_EQ(model.facts.image.tokens, 256);
}

TEST(Catalog, HasCheckpointsByTheNamesThatPeopleType) {
  for (const char* name :
       {"Qwen/Qwen2.5-Coder-7B-Instruct", "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
        "codellama/CodeLlama-7b-hf", "google/paligemma-3b-pt-224", "Qwen/Qwen3-VL-8B-Instruct",
        "mistralai/Mistral-Small-24B-Instruct-2501", "ibm-granite/granite-3.1-2b-instruct",
        "answerdotai/ModernBERT-base", "microsoft/deberta-v3-large", "google/gemma-4-31B-it",
        "openai/clip-vit-large-patch14", "facebook/wav2vec2-base-960h",
        "deepseek-ai/DeepSeek-V3-0324"})
    EXPECT_TRUE(find_model(name)) << name;
}

TEST(Catalog, SpellingsAndOrganisationsDoNotMatter) {
  for (const char* name : {"llama-2-7b", "LLAMA_2_7B", "Llama 2 7B", "meta-llama/Llama-2-7b-hf",
                           "someone/llama-2-7b"}) {
    const auto entry = find_model(name);
    ASSERT_TRUE(entry) << name;
    EXPECT_EQ(entry->name, "llama-2-7b");
    EXPECT_EQ(entry->family, "llama");
  }
  EXPECT_FALSE(find_model("llama-9-7b"));
  EXPECT_FALSE(find_model(""));
  EXPECT_FALSE(find_model("meta-llama/"));
}

TEST(Catalog, WordsForTuningAndStorageDoNotMatter) {
  const std::map<std::string, std::string> names{
      {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
      {"meta-llama/Llama-3.2-3B-Instruct", "llama-3.2-3b"},
      {"meta-llama/Llama-2-13b-chat-hf", "llama-2-13b"},
      {"Qwen/Qwen2.5-14B-Instruct", "qwen2.5-14b"},
      {"Qwen/Qwen3-8B-Base", "qwen3-8b"},
      {"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b-v0.1"},
      {"deepseek-ai/DeepSeek-V2-Lite-Chat", "deepseek-v2-lite"},
      {"nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-Base-BF16", "nemotron-3-nano-30b-a3b"},
      {"LLM-Research/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"},
      {"google-bert/bert-base-uncased", "bert-base-uncased"}};
  for (const auto& [name, entry] : names) {
    const auto found = find_model(name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->name, entry) << name;
  }
  EXPECT_FALSE(find_model("instruct"));
  EXPECT_FALSE(find_model("base"));
  EXPECT_FALSE(find_model("-"));
  EXPECT_FALSE(find_model("nvidia"));
  EXPECT_FALSE(find_model("llama-3.1-8b-instruct-turbo"));
}

TEST(Catalog, TheNearestNameIsOffered) {
  EXPECT_EQ(nearest_model("lama-2-7b"), "llama-2-7b");
  EXPECT_EQ(nearest_model("zzzzzzzzzzzzzz"), "");
  EXPECT_EQ(nearest_model("gemma3-5b").substr(0, 8), "gemma-3-") << "no gemma-2b";
  EXPECT_EQ(nearest_model("Llama-3-80B").substr(0, 8), "llama-3-") << "no llama-30b";
  EXPECT_EQ(nearest_model("deepseek-r1-8b"), "deepseek-r1-distill-llama-8b");
  EXPECT_EQ(nearest_model("qwen3-7b"), "qwen3-8b") << "no qwen3-1.7b";
  EXPECT_EQ(nearest_model("Qwen/Qwen3-16B"), "qwen3-14b");
  EXPECT_EQ(nearest_model("qwen-image-edit-plus"), "");
  EXPECT_EQ(nearest_model("nvidia"), "") << "a maker alone";
}

TEST(Catalog, WeightsOfFewBitsAreNotTheModelButItIsOffered) {
  const std::map<std::string, std::string> names = {
      {"unsloth/Llama-3.2-1B-Instruct-bnb-4bit", "llama-3.2-1b"},
      {"unsloth/Qwen3-14B-unsloth-bnb-4bit", "qwen3-14b"},
      {"Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b"},
      {"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "qwen2.5-7b"},
      {"Qwen/Qwen3-8B-FP8", "qwen3-8b"}};
  for (const auto& [name, whole] : names) {
    EXPECT_FALSE(find_model(name)) << name;
    EXPECT_EQ(nearest_model(name), whole) << name;
  }
}

TEST(Catalog, ANameOfTheHubIsToldFromAPath) {
  EXPECT_TRUE(is_hub_name("someone/New-3B"));
  for (const char* name :
       {"new-3b", "./models/new", "../new", "/new", "a/b/c", "models/", "m/x.json"})
    EXPECT_FALSE(is_hub_name(name)) << name;
}

TEST(Catalog, ALookupIsQuickEnoughForACommandLine) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(find_model("no such model"));  // reads every file
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 200);  // a few on an idle machine; the bound leaves room for sanitizers
}

}  // namespace
}  // namespace shardplan
