#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/document.h"
#include "json/reader.h"
#include "support/error_of.h"
#include "support/subprocess.h"

namespace shardplan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Json, MalformedTextGivesFileLineAndColumn) {
  const auto error = error_text([] { parse_json("{\n  \"a\": 1,\n  b\n}", "x.json"); });
  EXPECT_THAT(error, HasSubstr("x.json: line 3, column 3"));
}

TEST(Json, DuplicateKeysDeepNestingAndNumbersOutOfRangeAreRefused) {
  EXPECT_THAT(error_text([] { parse_json(R"({"a": {"b": 1, "b": 2}})", "x"); }),
              HasSubstr("b: this key appears twice"));
  EXPECT_THAT(error_text([] { parse_json(std::string(5000, '['), "x"); }),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(error_text([] { parse_json(R"({"a": 1e999})", "x"); }), HasSubstr("not valid JSON"));
}

TEST(Json, AMissingFileAndADirectoryAreNamed) {
  EXPECT_THAT(error_text([] { read_json_file("/nonexistent/job.json"); }),
              HasSubstr("there is no such file"));
  EXPECT_THAT(error_text([] { read_json_file("/"); }), HasSubstr("directory"));
}

TEST(ObjectReader, ReadsTypesAndNamesThePathOfAMistake) {
  const Json json = parse_json(R"({"a": {"n": 5e8, "f": 0.5, "s": "x", "z": null}})", "x");
  ObjectReader root(json, "x.json");
  auto a = root.object("a");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->integer("n"), 500000000);
  EXPECT_EQ(a->number("f"), 0.5);
  EXPECT_EQ(a->integer("z"), std::nullopt);
  EXPECT_THAT(error_text([&] { a->integer("f"); }), HasSubstr("x.json: a.f: found 0.5"));
  EXPECT_THAT(error_text([&] { a->integer("n", 1, 10); }), HasSubstr("an integer from 1 to 10"));
  EXPECT_THAT(error_text([&] { a->boolean("s"); }), HasSubstr("true or false"));
}

TEST(ObjectReader, UnknownKeysGetTheNearestSpelling) {
  const Json json = parse_json(R"({"micro_bacth": 1})", "x");
  ObjectReader root(json, "x.json");
  root.integer("micro_batch");
  EXPECT_THAT(error_text([&] { root.finish(); }), HasSubstr("did you mean 'micro_batch'?"));
}

TEST(ObjectReader, ChoicesAreClosed) {
  const Json json = parse_json(R"({"device": "cpuu"})", "x");
  ObjectReader root(json, "x.json");
  EXPECT_THAT(error_text([&] {
                root.choice("device", {"cpu", "nvme"});
              }),
              HasSubstr("did you mean 'cpu'?"));
}

TEST(Json, SaysWhatPeopleDidWrong) {
  const auto refused = [](std::string_view text) {
    return error_text([&] { parse_json(text, "x.json"); });
  };
  EXPECT_THAT(refused("{\"a\": 1,\r\n}"),
              HasSubstr("x.json: line 2, column 1: not valid JSON: a comma behind the last value"));
  EXPECT_THAT(refused("[1, ]"), HasSubstr("a comma behind the last value"));
  EXPECT_THAT(refused("[1 2]"), Not(HasSubstr("comma behind")));
  EXPECT_THAT(refused(" \r\n"), HasSubstr("x.json: line 1, column 1: is empty; expected JSON"));
}

TEST(Files, ThatAreAbsentHaveANearName) {
  const TemporaryFolder folder;
  const std::string job = folder.file("train_job.json", "{}");
  EXPECT_THAT(error_text([&] { read_json_file(folder.path("trian_job.json")); }),
              HasSubstr("there is no such file; did you mean '" + job + "'?"));
  EXPECT_THAT(error_text([&] { read_json_file(folder.path("other.json")); }),
              Not(HasSubstr("did you mean")));
}

}  // namespace
}  // namespace shardplan
