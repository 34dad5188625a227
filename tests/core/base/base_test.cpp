#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "base/bytes.h"
#include "base/diagnostic.h"
#include "base/nearest.h"
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

}  // namespace
}  // namespace shardplan
