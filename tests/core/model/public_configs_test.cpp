// The record of public config.json files (tests/golden/public_configs.tsv, written by
// tests/accuracy/measure/counts/compare_counts.py): what transformers and this program counted of each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "model/architectures/registry.h"

namespace shardplan::public_configs_test {
namespace {

struct Line {
  std::string source, sha256, model_type, class_name, transformers, shardplan, reason;
};

std::vector<Line> lines() {
  std::ifstream in(SHARDPLAN_SOURCE_DIR "/tests/golden/public_configs.tsv");
  std::vector<Line> out;
  for (std::string text; std::getline(in, text);) {
    if (text.starts_with('#') || text.starts_with("source\t")) continue;
    std::istringstream cells(text);
    Line line;
    for (std::string* cell : {&line.source, &line.sha256, &line.model_type, &line.class_name,
                              &line.transformers, &line.shardplan, &line.reason})
      std::getline(cells, *cell, '\t');
    out.push_back(line);
  }
  return out;
}

bool counted(const std::string& cell) {
  return cell != "-";
}

TEST(PublicConfigs, AreCountedAsTransformersCountsThem) {
  int equal = 0;
  std::set<std::string> contents;
  for (const Line& line : lines()) {
    contents.insert(line.sha256);
    if (!counted(line.transformers) || !counted(line.shardplan)) continue;
    EXPECT_EQ(line.shardplan, line.transformers) << line.source;
    ++equal;
  }
  EXPECT_GE(contents.size(), 250U);
  EXPECT_GE(equal, 200);
}

TEST(PublicConfigs, OfCountedTypesAreOfTypesThatAreKnown) {
  const std::vector<std::string> known = supported_model_types();
  for (const Line& line : lines()) {
    const bool knows = std::find(known.begin(), known.end(), line.model_type) != known.end();
    if (counted(line.shardplan)) {
      EXPECT_TRUE(knows) << line.model_type;
    } else {
      EXPECT_NE(line.reason, "") << line.source;
    }
    if (line.reason.find("unsupported model_type") != std::string::npos) {
      EXPECT_FALSE(knows) << line.model_type << ": make the record again";
    }
  }
}

}  // namespace
}  // namespace shardplan::public_configs_test
