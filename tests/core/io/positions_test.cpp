#include "json/positions.h"

#include <gtest/gtest.h>

#include <string>

namespace shardplan {
namespace {

TextPosition at(int line, int column) {
  return {line, column};
}

TEST(Positions, AreThoseOfKeysFromOne) {
  const KeyPositions places =
      find_positions("{\n  \"a\": 1,\n  \"b\": {\"c\": [1, {\"d\": 2}]}\n}");
  EXPECT_EQ(places.find("a"), at(2, 3));
  EXPECT_EQ(places.find("b.c"), at(3, 9));
  EXPECT_EQ(places.find("b.c[1]"), at(3, 18));
  EXPECT_EQ(places.find("b.c[1].d"), at(3, 19));
}

TEST(Positions, OfAnAbsentKeyAreThoseOfTheBlockAroundIt) {
  const KeyPositions places = find_positions("{\n  \"fp16\": {}\n}");
  EXPECT_EQ(places.find("fp16.enabled"), at(2, 3));
  EXPECT_EQ(places.find("bf16.enabled"), at(1, 1));
}

TEST(Positions, SkipStringsCommentsAndAByteOrderMark) {
  const KeyPositions places = find_positions(
      "\xEF\xBB\xBF// {\"x\": 1}\n{ /* \"y\":\n */ \"a\": \"{\\\"b\\\": [\", \"c\": -1.5e-3}");
  EXPECT_EQ(places.find("a"), at(3, 5));
  EXPECT_EQ(places.find("c"), at(3, 23));
  EXPECT_EQ(places.find("x"), at(1, 1));
}

TEST(Positions, CountCodePoints) {
  EXPECT_EQ(find_positions("{\"größe\": 1, \"b\": 2}").find("b"), at(1, 14));
}

TEST(Positions, KnowTheSecondOfTwoEqualKeys) {
  const KeyPositions places = find_positions("{\"a\": {\"b\": 1},\n \"a\": 2}");
  EXPECT_EQ(places.find("a"), at(1, 2));
  EXPECT_EQ(places.repeated(), at(2, 2));
  EXPECT_EQ(places.repeated_path(), "a");
}

TEST(Positions, EndWhereATextCeasesToBeJson) {
  for (const char* text : {"", "{", "}", "[", "{\"a\"", "{\"a\":", "{\"a\": [1,", "]]", "{a: 1}",
                           "\"", "\"\\", "/*", "{\"a\": 1} {"})
    EXPECT_EQ(find_positions(text).find("zzz"), at(1, 1)) << text;
  EXPECT_EQ(find_positions(std::string(1'000'000, '[')).find("zzz"), at(1, 1));
}

}  // namespace
}  // namespace shardplan
