#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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

TEST(Embedded, ValuesOfEveryKindAreAsPacked) {
  const Json json = Json::parse(R"({
    "nothing": null, "yes": true, "no": false, "text": "Speicher für 7B", "empty": "",
    "small": [0, 127, -1, -32], "large": [128, 65535, 4294967295, 18446744073709551615],
    "negative": [-33, -128, -32768, -2147483648, -9223372036854775808],
    "parts": [0.5, -1e300, 3.4], "object": {}, "list": []})");
  Json all = json;
  for (int i = 0; i < 70'000; ++i) all["long"].push_back(i);
  for (int i = 0; i < 300; ++i) all["wide"][std::string(static_cast<std::size_t>(i), 'k')] = i;
  const std::vector<std::uint8_t> packed = Json::to_msgpack(all);
  const std::string_view bytes(reinterpret_cast<const char*>(packed.data()), packed.size());
  EXPECT_EQ(unpacked(bytes), all);
  EXPECT_THROW(unpacked(bytes.substr(0, bytes.size() - 1)), std::logic_error);
  EXPECT_THROW(unpacked("\xc1"), std::logic_error);
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
