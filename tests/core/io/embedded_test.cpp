// Embedded documents: what the quick reader makes of them is what the full parser makes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "embedded/files.h"
#include "embedded/json.h"
#include "embedded/known_json.h"

namespace shardplan {
namespace {

void expect_read_as_parsed(std::string_view text, const std::string& what) {
  // dump() tells integers from real numbers, and shows the order of keys.
  EXPECT_EQ(read_known_json(text).dump(), parse_json(text, what).dump()) << what;
}

TEST(EmbeddedJson, IsReadAsTheFullParserDoes) {
  int documents = 0;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.ends_with(".json")) continue;
    expect_read_as_parsed(file.text, std::string(file.path));
    ++documents;
  }
  EXPECT_GT(documents, 150);  // catalogues, and the records that the split names
}

TEST(EmbeddedJson, HasNoCharactersByTheirNumber) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.ends_with(".json")) continue;
    EXPECT_EQ(file.text.find("\\u"), std::string_view::npos) << file.path;
  }
}

TEST(EmbeddedJson, HasEveryKindOfValue) {
  expect_read_as_parsed(R"( { "a" : [ ] , "b":{},"c":[1,-2, 3.5,1e-5,-4E+2 ,18446744073709551615],
    "d": [true,false,null], "e":"\"\\\/\b\f\n\r\t é", "":"", "f": [[{"g":[{}]}]] } )",
                        "every kind");
  for (const char* text : {"0", "-7", "2.5", "\"x\"", "null", "[]"})
    expect_read_as_parsed(text, text);
}

}  // namespace
}  // namespace shardplan
