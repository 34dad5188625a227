#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "embedded/files.h"
#include "embedded/json.h"
#include "json/document.h"

namespace shardplan {
namespace {

std::string source_of(std::string_view path) {
  return std::string(SHARDPLAN_SOURCE_DIR "/data/") + std::string(path);
}

TEST(Embedded, FilesAreThoseOfTheDataFolder) {
  for (const EmbeddedFile& file : embedded_files()) {
    const std::string source = source_of(file.path);
    if (file.path.ends_with(".json"))
      EXPECT_EQ(unpacked(file.bytes).dump(), read_json_file(source).dump()) << source;
    else
      EXPECT_EQ(file.bytes, read_text_file(source)) << source;
  }
}

TEST(Embedded, EveryNameOfAModelLeadsToItsEntry) {
  for (const EmbeddedModelName& row : embedded_model_names()) {
    const Json entry = unpacked(row.entry);
    const Json names = row.alias ? entry.at("aliases") : Json::array({entry.at("name")});
    EXPECT_TRUE(std::find(names.begin(), names.end(), Json(row.name)) != names.end()) << row.name;
  }
}

}  // namespace
}  // namespace shardplan
