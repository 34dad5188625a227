// Where each measurement comes from (data/measurements/provenance.json, from the history): the
// commit that added it, and the one that predicted it before, or that there was none.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "json/document.h"

namespace shardplan::provenance_test {
namespace {

const std::filesystem::path kMeasurements =
    std::filesystem::path(SHARDPLAN_SOURCE_DIR) / "data" / "measurements";

const Json& provenance() {
  static const Json json = read_json_file((kMeasurements / "provenance.json").string());
  return json;
}

/// The files of measurements: those that no program made are left out.
std::vector<std::filesystem::path> measured_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kMeasurements)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".json" && path.filename() != "provenance.json" &&
        path.filename() != "split.json")
      files.push_back(path);
  }
  return files;
}

/// How often each name is under a commit of these groups.
std::map<std::string, int> names_under(const std::vector<std::string>& groups) {
  std::map<std::string, int> count;
  for (const std::string& group : groups)
    for (const auto& [commit, names] : provenance().at(group).items())
      for (const Json& name : names) ++count[name.get<std::string>()];
  return count;
}

std::set<std::string> runs_of(const std::filesystem::path& path) {
  const std::string kind = path.lexically_relative(kMeasurements).begin()->string();
  if (kind == "training" || kind == "inference" || kind == "rlhf") return {path.stem().string()};
  std::set<std::string> names;
  const Json json = read_json_file(path.string());
  for (const char* key : {"rows", "cases"})
    if (json.is_object() && json.contains(key))
      for (const Json& row : json.at(key))
        if (row.contains("job")) names.insert(row.at("name").get<std::string>());
  return names;
}

TEST(Provenance, NamesTheCommitThatAddedEachFile) {
  const std::map<std::string, int> added = names_under({"added"});
  std::size_t files = 0;
  for (const std::filesystem::path& path : measured_files()) {
    const std::string name = path.lexically_relative(kMeasurements).replace_extension().string();
    const auto found = added.find(name);
    EXPECT_TRUE(found != added.end() && found->second == 1) << name;
    ++files;
  }
  EXPECT_EQ(added.size(), files);
}

/// A run is under the commit that predicted it, or is said to have no prediction made before.
TEST(Provenance, SaysOfEachRunWhichCommitPredictedIt) {
  std::map<std::string, int> told = names_under({"predicted", "beside"});
  for (const Json& name : provenance().at("none")) ++told[name.get<std::string>()];
  std::set<std::string> runs;
  for (const std::filesystem::path& path : measured_files()) runs.merge(runs_of(path));
  for (const std::string& name : runs) EXPECT_EQ(told[name], 1) << name;
  EXPECT_EQ(told.size(), runs.size());
}

TEST(Provenance, NamesCommitsInFull) {
  for (const char* group : {"added", "predicted", "beside"})
    for (const auto& [commit, names] : provenance().at(group).items()) {
      EXPECT_EQ(commit.size(), 40U) << commit;
      EXPECT_TRUE(std::all_of(commit.begin(), commit.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      })) << commit;
      EXPECT_FALSE(names.empty()) << commit;
    }
}

}  // namespace
}  // namespace shardplan::provenance_test
