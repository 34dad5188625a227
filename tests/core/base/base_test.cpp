#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/bytes.h"
#include "base/diagnostic.h"
#include "base/nearest.h"
#include "base/quantity.h"
#include "base/said.h"
#include "formats/dtype.h"

namespace shardplan {
namespace {

TEST(Bytes, ArithmeticIsCheckedAndThrowsInsteadOfWrapping) {
  const Bytes most(std::numeric_limits<std::int64_t>::max());
  EXPECT_THROW(most + Bytes(1), OverflowError);
  EXPECT_THROW(most * 2, OverflowError);
  EXPECT_EQ((Bytes(3) * 4 - Bytes(2)).count(), 10);
}

TEST(Checked, RoundsUpToMultiples) {
  EXPECT_EQ(round_up(0, 512), 0);
  EXPECT_EQ(round_up(1, 512), 512);
  EXPECT_EQ(round_up(512, 512), 512);
  EXPECT_EQ(ceil_div(7, 2), 4);
}

TEST(Nearest, FindsMisspellingsAndStaysSilentOtherwise) {
  constexpr std::array<std::string_view, 3> kNames{"zero_optimization", "optimizer", "scheduler"};
  EXPECT_EQ(nearest("zero_optimisation", kNames), "zero_optimization");
  EXPECT_EQ(nearest("ZeroOptimization", kNames), "zero_optimization");
  EXPECT_EQ(nearest("optimzier", kNames), "optimizer");
  EXPECT_EQ(nearest("banana", kNames), "");
}

/// Digits are bits and versions: a name that has others is the second choice.
TEST(Nearest, FindsWhatANameWithDigitsIsShortFor) {
  const std::vector<std::string> names{"adamw", "adamw_8bit", "paged_adamw_8bit", "adamw_4bit"};
  EXPECT_EQ(nearest("adamw8", names), "adamw_8bit");
  EXPECT_EQ(nearest("adam-8", names), "adamw_8bit");
  EXPECT_EQ(nearest("paged_adamw8", names), "paged_adamw_8bit");
  EXPECT_EQ(nearest("adamw4", names), "adamw_4bit");
  EXPECT_EQ(nearest("adamw2", names), "adamw");
  const std::vector<std::string> gpus{"V100", "B200"};
  EXPECT_EQ(nearest("B100", gpus), "B200") << "as near as V100, and of the same letter";
}

TEST(Nearest, FindsNamesThatHaveAWord) {
  const std::vector<std::string> names{
      "micro_batch", "tensor-parallel-size", "tensor-parallel", "async-tensor",
      "packing",     "max_length",           "min_length"};
  EXPECT_EQ(with_words("batch", names), "micro_batch");
  EXPECT_EQ(with_words("tensor", names), "tensor-parallel");
  EXPECT_EQ(with_words("length", names), "") << "two have it";
  EXPECT_EQ(with_words("pack", names), "") << "no whole word";
  EXPECT_EQ(with_words("max", names), "") << "too short";
}

TEST(Diagnostic, PrintsEveryKnownPart) {
  EXPECT_EQ(to_string({.file = "job.json",
                       .key = "framework.name",
                       .message = "unknown framework 'fdsp2'",
                       .expected = "single, ddp or fsdp2",
                       .nearest = "fsdp2"}),
            "job.json: framework.name: unknown framework 'fdsp2'; expected single, ddp or fsdp2; "
            "did you mean 'fsdp2'?");
}

TEST(DType, ReadsItsOwnAndPyTorchsNames) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16, DType::i64, DType::b1})
    EXPECT_EQ(parse_dtype(name_of(type)), type);
  EXPECT_EQ(parse_dtype("torch.bfloat16"), DType::bf16);
  EXPECT_EQ(parse_dtype("fp12"), std::nullopt);
}

TEST(Said, KeepsThePatternAndTheValuesOfItsFields) {
  const Said inner = say("{} of {}", "3.0 GiB", 4);
  const Said outer = say("{{a}} costs {}: {:.1f} %", inner, 12.345);
  EXPECT_EQ(outer.text, "{a} costs 3.0 GiB of 4: 12.3 %");
  EXPECT_EQ(outer.id(), "{{a}} costs {}: {:.1f} %");
  ASSERT_EQ(outer.values.size(), 2U);
  EXPECT_EQ(outer.values[0].id(), "{} of {}");
  EXPECT_EQ(outer.values[0].values[0].text, "3.0 GiB");
  EXPECT_EQ(outer.values[1].text, "12.3");
}

TEST(Said, OfATextAloneIsItsOwnId) {
  const Said said = "must be odd";
  EXPECT_EQ(said.id(), "must be odd");
  EXPECT_TRUE(said.values.empty());
}

TEST(Quantities, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_quantity("15T"), 15e12);
  EXPECT_EQ(parse_quantity("1.5 trillion"), 1.5e12);
  EXPECT_EQ(parse_quantity("8k"), 8000);
  EXPECT_EQ(parse_quantity("8k", Magnitude::length), 8192);
  EXPECT_EQ(parse_quantity("1M", Magnitude::length), 1048576);
  EXPECT_EQ(parse_quantity("512GB", Magnitude::bytes), 512e9);
  EXPECT_EQ(parse_quantity("512 GiB", Magnitude::bytes), 549755813888.0);
  EXPECT_EQ(parse_quantity("$2.50"), 2.5);
  EXPECT_EQ(parse_quantity("1,234,567"), 1234567);
  EXPECT_EQ(parse_quantity("1_000"), 1000);
  EXPECT_EQ(parse_quantity("5e8"), 5e8);
  for (const char* none : {"", "k", "many", "-1", "1,23", "8q", "1e999", "nan", "inf", "8 9"})
    EXPECT_EQ(parse_quantity(none), std::nullopt) << none;
}

}  // namespace
}  // namespace shardplan
