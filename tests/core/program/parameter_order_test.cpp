// The order of a network's parameters against torch's named_parameters, which the scripts that made
// tests/golden/saved_tensors*.json noted.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>

#include "saved_tensors_case.h"

namespace shardplan::parameter_order_test {
namespace {

TEST(ParameterOrder, IsThatOfNamedParameters) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/tests/golden")) {
    if (!entry.path().filename().string().starts_with("saved_tensors")) continue;
    const Json file = read_json_file(entry.path().string());
    if (!file.contains("parameter_order")) continue;
    ++files;
    std::map<std::string, const Json*> configs;
    for (const Json& j : file.at("cases")) configs[j.at("case").get<std::string>()] = &j;
    for (const auto& [name, order] : file.at("parameter_order").items()) {
      const Model model = build_model(load_model_config(configs.at(name)->at("config"), name), {});
      std::vector<std::string> names;
      for (const ParameterGroup& group : model.groups)
        for (std::int64_t i = 0; i < group.repeat; ++i)
          for (std::int32_t k = group.first; k < group.first + group.count; ++k)
            names.push_back(std::regex_replace(model.parameters[static_cast<std::size_t>(k)].name,
                                               std::regex(R"(\{\})"),
                                               std::to_string(group.start + i)));
      EXPECT_EQ(names, order.get<std::vector<std::string>>()) << name;
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace shardplan::parameter_order_test
