// Every parameter tensor of the golden models, group by group: tests/golden/parameter_counts.json
// and parameter_counts_families.json were written by transformers itself on the meta device.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "json/document.h"
#include "load/model_config.h"
#include "model/architectures/registry.h"

#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

const Json& golden() {
  static const Json models = [] {
    Json all = Json::object();
    for (const char* file :
         {"/tests/golden/parameter_counts.json", "/tests/golden/parameter_counts_families.json"})
      all.update(read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + file).at("models"));
    return all;
  }();
  return models;
}

/// "model.layers.{}.x" and "model.layers.3.x" both become "model.layers.N.x".
std::string group_name(const std::string& name) {
  static const std::regex index(R"(\.(\d+|\{\})(?=\.|$))");
  return std::regex_replace(name, index, ".N");
}

using Groups = std::map<std::pair<std::string, std::vector<std::int64_t>>, std::int64_t>;

Groups groups_of(const Model& model) {
  Groups groups;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    groups[{group_name(p.name), p.shape}] += repeat;
  });
  return groups;
}

Groups groups_of(const Json& golden_groups) {
  Groups groups;
  for (const auto& [name, value] : golden_groups.items()) {
    groups[{group_name(name), value.at(0).get<std::vector<std::int64_t>>()}] +=
        value.at(1).get<std::int64_t>();
  }
  return groups;
}

class ParameterGroups : public testing::TestWithParam<std::string> {};

TEST_P(ParameterGroups, AreThoseOfTheReferenceImplementation) {
  const Json& entry = golden().at(GetParam());
  const BuildOptions options{.counts_only = true};
  const Model model = build_model(load_model_config(entry.at("config"), GetParam()), options);
  EXPECT_EQ(groups_of(model), groups_of(entry.at("groups")));
  EXPECT_EQ(model.parameter_count(), entry.at("parameters").get<std::int64_t>());
  EXPECT_EQ(model.tensor_count(), entry.at("tensors").get<std::int64_t>());
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, entry] : golden().items()) out.push_back(name);
  return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& model) {
  return std::regex_replace(model.param, std::regex("[^A-Za-z0-9]"), "_");
}

INSTANTIATE_TEST_SUITE_P(Golden, ParameterGroups, testing::ValuesIn(names()), test_name);

}  // namespace
}  // namespace shardplan
