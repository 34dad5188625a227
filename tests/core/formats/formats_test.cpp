// Bytes of whole tensors in every number format, worked out by hand from the published definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/stored_format.h"
#include "lowering/stored_weights.h"

namespace shardplan {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kRows = 4096, kColumns = 11008;  // Llama 2 7B's down projection, transposed
constexpr std::int64_t kAll = kRows * kColumns;

std::int64_t bytes(Quantization format) {
  return bytes_in(format_of(format), kAll, kRows);
}

TEST(Formats, ElementTypesTakeTheirBits) {
  for (const auto& [type, expected] : {std::pair{DType::f64, 8},
                                       {DType::f32, 4},
                                       {DType::tf32, 4},
                                       {DType::bf16, 2},
                                       {DType::f16, 2},
                                       {DType::e4m3, 1},
                                       {DType::e5m2, 1},
                                       {DType::i64, 8},
                                       {DType::i32, 4},
                                       {DType::i8, 1},
                                       {DType::b1, 1}}) {
    EXPECT_EQ(size_of(type), expected) << name_of(type);
    EXPECT_EQ(bytes_in(format_of(type), kAll, kRows), kAll * expected) << name_of(type);
  }
}

TEST(Formats, MicroscalingSharesAByteAmong32Elements) {
  // OCP Microscaling Formats (MX) 1.0: a block is 32 elements and one E8M0 scale, 8 + 32 · 8 bits.
  EXPECT_EQ(bytes(Quantization::mxfp8), kRows * (kColumns / 32) * (32 + 1));
  EXPECT_EQ(bytes(Quantization::mxint8), kRows * (kColumns / 32) * (32 + 1));
}

TEST(Formats, Nvfp4HasAScaleFor16ElementsAndOneForTheTensor) {
  // Two elements a byte, an E4M3 scale for 16, an fp32 scale for all.
  EXPECT_EQ(bytes(Quantization::nvfp4), kAll / 2 + kAll / 16 + 4);
}

TEST(Formats, WeightsOfFourBitsAreBitsandbytes) {
  EXPECT_EQ(bytes(Quantization::nf4), kAll / 2 + 4 * (kAll / 64));
  // Scales of a byte; 256 of them share an fp32 one.
  EXPECT_EQ(bytes(Quantization::nf4_double), kAll / 2 + kAll / 64 + 4 * (kAll / 64 / 256));
}

TEST(Formats, WeightsOfEightBitsHaveScalesByRowOrByTile) {
  EXPECT_EQ(bytes(Quantization::int8), kAll + 4 * kRows);
  EXPECT_EQ(bytes(Quantization::fp8), kAll + 4 * (kRows / 128) * (kColumns / 128));
}

TEST(Formats, GroupsOf128HaveAScaleAndAZeroPoint) {
  const std::int64_t groups = kRows * (kColumns / 128);
  EXPECT_EQ(bytes(Quantization::awq), kAll / 2 + 2 * groups + groups / 2);
  EXPECT_EQ(bytes(Quantization::gptq), bytes(Quantization::awq) + 4 * kColumns);  // the order
}

TEST(Formats, Mxfp4HasAScaleFor32Elements) {
  EXPECT_EQ(bytes(Quantization::mxfp4), kAll / 2 + kAll / 32);
}

TEST(Formats, WhatDoesNotFillABlockHasAScaleOfItsOwn) {
  const std::int64_t rows = 3, columns = 130, all = rows * columns;
  const auto parts = [&](Quantization f) { return bytes_of_parts(format_of(f), all, rows); };
  EXPECT_THAT(parts(Quantization::mxfp8), ElementsAre(390, 3 * 5));
  EXPECT_THAT(parts(Quantization::nvfp4), ElementsAre(195, 3 * 9, 4));
  EXPECT_THAT(parts(Quantization::fp8), ElementsAre(390, 4 * 2));
  EXPECT_THAT(parts(Quantization::nf4), ElementsAre(195, 4 * 7));  // blocks run over rows' ends
  EXPECT_THAT(parts(Quantization::nf4_double), ElementsAre(195, 7, 4));
  EXPECT_THAT(parts(Quantization::gptq), ElementsAre(195, 2 * 6, 3, 4 * 130));
}

TEST(Formats, EachPartIsATensorOfTheAllocator) {
  Parameter p;
  p.shape = {3, 130};
  p.numel = 390;
  p.stored = Quantization::nf4;
  EXPECT_EQ(stored_bytes(p, DType::bf16, Quantization::nvfp4), 3 * 512);
  EXPECT_EQ(stored_bytes(p, DType::bf16, Quantization::gptq), 3 * 512 + 1024);
  EXPECT_EQ(stored_bytes(p, DType::bf16, Quantization::none), 1024);
  p.stored = Quantization::none;
  EXPECT_EQ(stored_bytes(p, DType::bf16, Quantization::nvfp4), 1024);
}

TEST(Formats, NamesReadBackWhatTheyWrite) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name_of(type), 0), type);
    for (const std::string_view other : format_of(type).other_names)
      if (!other.empty()) {
        EXPECT_EQ(parse_dtype("torch." + std::string(other), 0), type) << other;
      }
  }
  for (std::size_t i = 0; i < kStoredFormats.size(); ++i)
    EXPECT_EQ(parse_quantization(kStoredFormats[i].name, 0), static_cast<Quantization>(i));
}

TEST(Formats, AreReadOnlyWhereTheyHaveAUse) {
  EXPECT_EQ(parse_dtype("tf32"), std::nullopt);  // no tensor has it
  EXPECT_EQ(parse_dtype("float8_e4m3fn"), DType::e4m3);
  EXPECT_EQ(parse_dtype("float8_e4m3fn", kTrainingType), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_EQ(parse_quantization("gptq", kBaseStore), std::nullopt);
  EXPECT_EQ(parse_quantization("nvfp4", kWeightStore), std::nullopt);
  EXPECT_EQ(alternatives(dtype_names(kTrainingType)), "fp32, bf16 or fp16");
  EXPECT_THAT(quantization_names(kBaseStore),
              ElementsAre("none", "nf4", "nf4_double", "fp4", "fp4_double", "int8"));
}

TEST(Formats, OfMatrixUnitsSayTheirRateAndWhatTheySumIn) {
  for (const NumberFormat& format : kDTypes)
    EXPECT_EQ(!!format.rate, !!format.sums && format.bits < 64);
  EXPECT_EQ(format_of(DType::e5m2).rate, PeakRate::fp8);
  EXPECT_EQ(format_of(DType::tf32).rate, PeakRate::tf32);
  EXPECT_EQ(format_of(DType::i8).sums, DType::i32);
  EXPECT_EQ(format_of(Quantization::nvfp4).rate, PeakRate::fp4);
  EXPECT_EQ(format_of(Quantization::nf4).rate, std::nullopt);  // widened first
}

}  // namespace
}  // namespace shardplan
