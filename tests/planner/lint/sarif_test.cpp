// The rules of SARIF 2.1.0 (OASIS Standard, docs.oasis-open.org/sarif/sarif/v2.1.0) that a log of
// lint has to keep, on the failing example of every rule. The properties of each object, and which
// must be there, are those of the sections of the standard that are named here.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lint/registry.h"
#include "lint_testing.h"
#include "render/lint_data.h"

namespace shardplan {
namespace {

struct Shape {
  std::set<std::string> required, optional;
};

/// What an object of each kind may have: anything else is a spelling mistake.
const std::map<std::string, Shape>& shapes() {
  static const std::map<std::string, Shape> all{
      {"sarifLog", {{"version", "runs"}, {"$schema"}}},                       // 3.13
      {"run", {{"tool", "results"}, {"columnKind"}}},                         // 3.14
      {"tool", {{"driver"}, {}}},                                             // 3.18
      {"toolComponent", {{"name"}, {"version", "rules", "informationUri"}}},  // 3.19
      {"reportingDescriptor",                                                 // 3.49
       {{"id"},
        {"shortDescription", "fullDescription", "help", "defaultConfiguration", "properties"}}},
      {"reportingConfiguration", {{}, {"level"}}},                               // 3.50
      {"result", {{"message"}, {"ruleId", "ruleIndex", "level", "locations"}}},  // 3.27
      {"message", {{"text"}, {}}},                                               // 3.11
      {"location", {{}, {"physicalLocation"}}},                                  // 3.28
      {"physicalLocation", {{"artifactLocation"}, {"region"}}},                  // 3.29
      {"artifactLocation", {{"uri"}, {}}},                                       // 3.4
      {"region", {{"startLine"}, {"startColumn"}}},                              // 3.30
      {"propertyBag", {{}, {"tags"}}},                                           // 3.8
  };
  return all;
}

void expect_shape(const Json& object, const std::string& kind) {
  ASSERT_TRUE(object.is_object()) << kind << ": " << object;
  const Shape& shape = shapes().at(kind);
  for (const std::string& key : shape.required)
    EXPECT_TRUE(object.contains(key)) << kind << " has no " << key;
  for (const auto& [key, value] : object.items())
    EXPECT_TRUE(shape.required.contains(key) || shape.optional.contains(key))
        << kind << " has no property " << key << " in SARIF";
}

/// 3.10: a reference of RFC 3986; an absolute path has the scheme "file".
void expect_uri(const std::string& uri) {
  static const std::string kAllowed = "-._~:/?#[]@!$&'()*+,;=%";
  EXPECT_FALSE(uri.empty());
  for (const char c : uri)
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                kAllowed.find(c) != std::string::npos)
        << uri;
  EXPECT_NE(uri.front(), '/') << uri;
}

void expect_message(const Json& message) {
  expect_shape(message, "message");
  EXPECT_FALSE(message["text"].get<std::string>().empty());
}

void expect_level(const Json& level) {  // 3.27.10
  static const std::set<std::string> kLevels{"none", "note", "warning", "error"};
  EXPECT_TRUE(kLevels.contains(level)) << level;
}

void expect_rule(const Json& rule) {
  expect_shape(rule, "reportingDescriptor");
  expect_shape(rule["defaultConfiguration"], "reportingConfiguration");
  expect_level(rule["defaultConfiguration"]["level"]);
  for (const char* text : {"shortDescription", "fullDescription", "help"})
    expect_message(rule[text]);
  expect_shape(rule["properties"], "propertyBag");
  // 3.8.2: tags are distinct strings.
  const std::vector<std::string> tags = rule["properties"]["tags"];
  EXPECT_EQ(std::set(tags.begin(), tags.end()).size(), tags.size());
}

void expect_result(const Json& result, const Json& rules) {
  expect_shape(result, "result");
  expect_message(result["message"]);
  expect_level(result["level"]);
  // 3.27.6, 3.52.5: the index leads to the descriptor of that id.
  ASSERT_LT(result["ruleIndex"].get<std::size_t>(), rules.size());
  EXPECT_EQ(rules[result["ruleIndex"].get<std::size_t>()]["id"], result["ruleId"]);
  ASSERT_EQ(result["locations"].size(), 1U);
  const Json& location = result["locations"][0];
  expect_shape(location, "location");
  const Json& physical = location["physicalLocation"];
  expect_shape(physical, "physicalLocation");
  expect_shape(physical["artifactLocation"], "artifactLocation");
  expect_uri(physical["artifactLocation"]["uri"]);
  if (!physical.contains("region")) return;
  expect_shape(physical["region"], "region");
  EXPECT_GE(physical["region"]["startLine"], 1);    // 3.30.5
  EXPECT_GE(physical["region"]["startColumn"], 1);  // 3.30.6
}

void expect_sarif(const Json& log) {
  expect_shape(log, "sarifLog");
  EXPECT_EQ(log["version"], "2.1.0");
  ASSERT_EQ(log["runs"].size(), 1U);
  const Json& run = log["runs"][0];
  expect_shape(run, "run");
  EXPECT_EQ(run["columnKind"], "unicodeCodePoints");  // 3.14.17
  expect_shape(run["tool"], "tool");
  const Json& driver = run["tool"]["driver"];
  expect_shape(driver, "toolComponent");
  std::set<std::string> ids;
  for (const Json& rule : driver["rules"]) {
    expect_rule(rule);
    EXPECT_TRUE(ids.insert(rule["id"]).second) << rule["id"];
  }
  for (const Json& result : run["results"]) expect_result(result, driver["rules"]);
}

TEST(Sarif, KeepsTheStandardForTheFindingsOfEveryRule) {
  for (const auto& entry : std::filesystem::directory_iterator(lint_folder() / "rules")) {
    SCOPED_TRACE(entry.path().filename().string());
    const LintReport report = lint_example(entry.path(), "fail", options_of(entry.path(), "fail"));
    const Json log = lint_sarif(report, "0.1.0");
    EXPECT_EQ(log["runs"][0]["results"].size(), report.findings.size());
    expect_sarif(log);
  }
}

TEST(Sarif, OfNoFindingsHasAnEmptyListOfResults) {
  const Json log =
      lint_sarif(lint_text_of(R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
        "gradient_clipping": 1.0, "zero_optimization": {"stage": 1}})"),
                 "0.1.0");
  ASSERT_TRUE(log["runs"][0]["results"].is_array());
  expect_sarif(log);
}

std::string uri_of_file(const std::string& file) {
  LintRequest request;
  request.config = SourceText{file, R"({"zero_optimization": {"stage": 9}})"};
  const Json log = lint_sarif(lint_with(std::move(request)), "0.1.0");
  expect_sarif(log);
  return log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
            ["uri"];
}

TEST(Sarif, WritesPathsAsReferences) {
  EXPECT_EQ(uri_of_file("configs/ds.json"), "configs/ds.json");
  EXPECT_EQ(uri_of_file("my configs/a:b%.json"), "my%20configs/a%3Ab%25.json");
  EXPECT_EQ(uri_of_file("설정.json"), "%EC%84%A4%EC%A0%95.json");
  EXPECT_EQ(uri_of_file("/data/ds.json"), "file:///data/ds.json");
}

}  // namespace
}  // namespace shardplan
