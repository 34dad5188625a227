// What Python's hjson 3.1 and json make of a text, each value as they gave it.
#include "json/hjson.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "json/python_json.h"
#include "support/error_of.h"

namespace shardplan {
namespace {

using ::testing::HasSubstr;

struct HjsonCase {
  const char* text;
  const char* read;  ///< as plain JSON
};

class HjsonText : public ::testing::TestWithParam<HjsonCase> {};

TEST_P(HjsonText, IsReadAsPythonReadsIt) {
  EXPECT_EQ(parse_hjson(GetParam().text, "ds.json"), Json::parse(GetParam().read))
      << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    All, HjsonText,
    ::testing::Values(
        HjsonCase{R"({"a": 1, "b": [true, null, "x"],})", R"({"a":1,"b":[true,null,"x"]})"},
        HjsonCase{"{ // one\n \"a\": 1 # two\n /* three */ \"b\": 2 }", R"({"a":1,"b":2})"},
        HjsonCase{"{\"a\": 1\n\"b\": 2}", R"({"a":1,"b":2})"},
        HjsonCase{"{a: word of text\nb: 5 apples, 3\n}",
                  R"({"a":"word of text","b":"5 apples, 3"})"},
        HjsonCase{"a: 1\nb: {c: true}\n", R"({"a":1,"b":{"c":true}})"},
        HjsonCase{"{\"a\": 5e8, \"b\": 1e10, \"c\": 2.0, \"d\": 0.5, \"e\": -3}",
                  R"({"a":500000000,"b":1e10,"c":2,"d":0.5,"e":-3})"},
        HjsonCase{"{'a': 'x\"y'}", R"({"a":"x\"y"})"},
        HjsonCase{"{\n  b: '''one\n     two'''\n}", R"({"b":"one\ntwo"})"},
        HjsonCase{"{\n  b:\n    '''\n    one\n      two\n    '''\n}", R"({"b":"one\n  two"})"},
        HjsonCase{"{\"steps\": Infinity\n}", R"({"steps":"Infinity"})"},
        HjsonCase{"{\"path\": /tmp\n}", R"({"path":"/tmp"})"},
        HjsonCase{"[1 ,2,\n3\n4]", "[1,2,3,4]"}, HjsonCase{"", "{}"},
        HjsonCase{R"({"a": "\u00e9\n\ud83d\ude00"})", R"({"a":"é\n😀"})"}));

TEST(Hjson, SaysWhereItStops) {
  const auto error = [](const char* text) {
    return error_text([&] { parse_hjson(text, "ds.json"); });
  };
  EXPECT_THAT(error("{\n  \"a\": ,\n}"), HasSubstr("ds.json: line 2, column 8: not valid JSON"));
  EXPECT_THAT(error("{\"a\": 1"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error("{\"a\": \"x"), HasSubstr("does not end"));
  EXPECT_THAT(error("{\"a\": 1} {"), HasSubstr("more text"));
  EXPECT_THAT(error("{\"a\": /* x"), HasSubstr("a comment that does not end"));
  EXPECT_THAT(error("{\"a\": 1, \"a\": 2}"), HasSubstr("a: this key appears twice"));
  EXPECT_THAT(error("{\"a\": \"\xff\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(error(std::string(5000, '[').c_str()), HasSubstr("nested too deeply"));
}

TEST(PythonJson, TakesInfinityNanAndTheLastOfTwoKeys) {
  const Json read = parse_python_json(
      R"({"a": Infinity, "b": [-Infinity, NaN], "c": "NaN", "d": 1, "d": 2})", "ds.json");
  EXPECT_EQ(read["a"].get<double>(), HUGE_VAL);
  EXPECT_EQ(read["b"][0].get<double>(), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(read["b"][1].get<double>()));
  EXPECT_EQ(read["c"], "NaN");
  EXPECT_EQ(read["d"], 2);
  EXPECT_EQ(dump_python_json(read),
            "{\n  \"a\": Infinity,\n  \"b\": [\n    -Infinity,\n    NaN\n  ],\n"
            "  \"c\": \"NaN\",\n  \"d\": 2\n}");
  EXPECT_THAT(error_text([] { parse_python_json("{\"a\": NaN,\n \"b\": }", "x"); }),
              HasSubstr("x: line 2"));
  EXPECT_THAT(error_text([] { parse_python_json("{\"a\": 1,}", "x"); }), HasSubstr("not valid"));
}

}  // namespace
}  // namespace shardplan
