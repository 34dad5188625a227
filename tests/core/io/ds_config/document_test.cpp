// Which program reads a ds_config decides what may stand in it.
#include "load/ds_config/document.h"

#include "ds_config_testing.h"
#include "support/error_of.h"

namespace shardplan {
namespace {

using ::testing::HasSubstr;

constexpr const char* kComment = "{\"train_batch_size\": 8, // mine\n}";
constexpr const char* kTwice = R"({"a": 1, "a": 2})";

TEST(DsDocument, OfDeepSpeedAloneIsHjson) {
  const DsDocument read = read_ds_document(kComment, "ds.json");
  EXPECT_EQ(read.json["train_batch_size"], 8);
  EXPECT_EQ(read.text, DsText::hjson);
  EXPECT_EQ(read_ds_document("{\"a\": 1}", "ds.json").text, DsText::plain);
  EXPECT_THAT(error_text([] { read_ds_document(kTwice, "ds.json"); }), HasSubstr("twice"));
}

TEST(DsDocument, UnderATrainerIsPythonsJson) {
  const auto trainer = AutoResolver::hf_trainer;
  EXPECT_THAT(error_text([&] { read_ds_document(kComment, "ds.json", trainer); }),
              HasSubstr("line 1"));
  const DsDocument twice = read_ds_document(kTwice, "ds.json", trainer);
  EXPECT_EQ(twice.json["a"], 2);
  EXPECT_EQ(twice.text, DsText::repeated);
  const char* never = "{\"steps_per_print\": Infinity\n}";
  EXPECT_TRUE(read_ds_document(never, "ds.json", trainer).json["steps_per_print"].is_number());
  EXPECT_TRUE(read_ds_document(never, "ds.json").json["steps_per_print"].is_string());
}

TEST(DsDocument, WithAnAutoIsATrainersUnlessOnlyHjsonReadsIt) {
  const DsDocument twice = read_ds_document(R"({"a": "auto", "a": 2, "b": "auto"})", "ds.json");
  EXPECT_EQ(twice.json["a"], 2);
  EXPECT_EQ(twice.text, DsText::repeated);
  EXPECT_EQ(read_ds_document("{\"a\": \"auto\",}", "ds.json").text, DsText::hjson);
}

}  // namespace
}  // namespace shardplan
