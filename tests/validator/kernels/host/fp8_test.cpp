// Numbers of 8 bits, matrices of them, and their products on the host.
#include "device/fp8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/host/kernels.h"

namespace shardplan::validator::fp8_test {
namespace {

constexpr DType kTypes[] = {DType::e4m3, DType::e5m2};

bool is_number(std::uint8_t code, DType type) {
  return std::isfinite(decode_fp8(code, type));
}

TEST(Fp8Numbers, have_the_values_of_ofp8) {
  // OCP's OFP8 specification, revision 1.0, tables 1 and 2.
  EXPECT_EQ(decode_fp8(0x7E, DType::e4m3), 448);
  EXPECT_EQ(decode_fp8(0x08, DType::e4m3), std::ldexp(1.0F, -6));
  EXPECT_EQ(decode_fp8(0x01, DType::e4m3), std::ldexp(1.0F, -9));
  EXPECT_EQ(decode_fp8(0x07, DType::e4m3), std::ldexp(7.0F, -9));
  EXPECT_TRUE(std::isnan(decode_fp8(0x7F, DType::e4m3)));
  EXPECT_TRUE(std::isnan(decode_fp8(0xFF, DType::e4m3)));
  EXPECT_EQ(decode_fp8(0x7B, DType::e5m2), 57344);
  EXPECT_EQ(decode_fp8(0x04, DType::e5m2), std::ldexp(1.0F, -14));
  EXPECT_EQ(decode_fp8(0x01, DType::e5m2), std::ldexp(1.0F, -16));
  EXPECT_EQ(decode_fp8(0xFC, DType::e5m2), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(decode_fp8(0x7D, DType::e5m2)));
}

TEST(Fp8Numbers, come_back_from_their_values) {
  for (const DType type : kTypes)
    for (int code = 0; code < 256; ++code) {
      const auto c = static_cast<std::uint8_t>(code);
      if (!is_number(c, type)) continue;
      EXPECT_EQ(encode_fp8(decode_fp8(c, type), type), c);
    }
}

TEST(Fp8Numbers, are_the_nearest_and_of_two_alike_the_even_one) {
  for (const DType type : kTypes)
    for (std::uint8_t code = 0; is_number(code + 1, type) && code < 0x7E; ++code) {
      const float low = decode_fp8(code, type);
      const float high = decode_fp8(static_cast<std::uint8_t>(code + 1), type);
      const float half = low + (high - low) / 2;
      const auto even = static_cast<std::uint8_t>(code % 2 == 0 ? code : code + 1);
      EXPECT_EQ(encode_fp8(half, type), even) << low;
      EXPECT_EQ(encode_fp8(std::nextafter(half, low), type), code) << low;
      EXPECT_EQ(encode_fp8(std::nextafter(half, high), type), code + 1) << low;
      EXPECT_EQ(encode_fp8(-half, type), even | 0x80) << low;
    }
}

TEST(Fp8Numbers, end_at_the_largest_and_keep_what_is_no_number) {
  for (const DType type : kTypes) {
    EXPECT_EQ(decode_fp8(encode_fp8(1e30F, type), type), largest_fp8(type));
    EXPECT_EQ(decode_fp8(encode_fp8(-std::numeric_limits<float>::infinity(), type), type),
              -largest_fp8(type));
    EXPECT_TRUE(std::isnan(decode_fp8(encode_fp8(std::nanf(""), type), type)));
  }
}

TEST(Fp8Scales, bring_the_largest_magnitude_to_the_largest_number) {
  EXPECT_EQ(fp8_scale(7, DType::e4m3, false), 64);
  EXPECT_EQ(fp8_scale(3, DType::e5m2, false), static_cast<float>(57344.0 / 3));
  EXPECT_EQ(fp8_scale(3, DType::e4m3, true), 128);  // 149.3, down
  EXPECT_EQ(fp8_scale(0, DType::e4m3, false), static_cast<float>(448 / 1e-12));
}

struct Buffer {
  explicit Buffer(std::int64_t rows, std::int64_t columns, DType dtype)
      : bytes(static_cast<std::size_t>(rows * columns * size_of(dtype))),
        tensor{reinterpret_cast<std::uintptr_t>(bytes.data()), dtype, Shape{rows, columns}} {}
  std::vector<std::byte> bytes;
  Tensor tensor;
};

struct Operand {
  Operand(std::int64_t rows, std::int64_t columns, DType type, bool by_rows)
      : values(rows, columns, type), scales(2, by_rows ? rows : 1, DType::f32) {}
  Fp8Matrix of() const { return {values.tensor, scales.tensor}; }
  float at(std::int64_t row, std::int64_t column) const {
    const std::int64_t columns = values.tensor.width(), count = scales.tensor.width();
    return decode_fp8(values.tensor.as<std::uint8_t>()[row * columns + column],
                      values.tensor.dtype) *
           scales.tensor.as<float>()[count == 1 ? 0 : row];
  }
  Buffer values, scales;
};

/// Rows and columns of very different magnitudes.
Buffer uneven(std::int64_t rows, std::int64_t columns) {
  Buffer x(rows, columns, DType::f32);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c)
      x.tensor.as<float>()[r * columns + c] =
          std::ldexp(normal(random), static_cast<int>(r % 5 - 3 * (c % 4)));
  return x;
}

/// No further from x than rounding makes it: half a step of a number, or of the least normal one.
void expect_near(float rounded, float x, float scale, DType type) {
  const int bits = type == DType::e4m3 ? 3 : 2, least = type == DType::e4m3 ? -6 : -14;
  const float step =
      std::ldexp(std::abs(x), -bits - 1) + std::ldexp(1.0F, least - bits - 1) / scale;
  EXPECT_NEAR(rounded, x, 1.001F * step);
}

TEST(Fp8Cast, rounds_a_matrix_as_it_lies_and_turned) {
  constexpr std::int64_t kRows = 32, kColumns = 48;
  const Buffer x = uneven(kRows, kColumns);
  for (const DType type : kTypes)
    for (const bool by_rows : {false, true}) {
      const Operand to(kRows, kColumns, type, by_rows), turned(kColumns, kRows, type, by_rows);
      const Fp8Matrix other =
          by_rows ? turned.of() : Fp8Matrix{turned.values.tensor, to.scales.tensor};
      host::cast_fp8(
          {.from = x.tensor, .to = to.of(), .turned = other, .type = type, .by_rows = by_rows});
      const std::uint8_t* codes = to.values.tensor.as<std::uint8_t>();
      std::int64_t different = 0;
      for (std::int64_t r = 0; r < kRows; ++r)
        for (std::int64_t c = 0; c < kColumns; ++c) {
          const float value = x.tensor.as<float>()[r * kColumns + c];
          const float scale = to.scales.tensor.as<float>()[by_rows ? kRows + r : 1];
          expect_near(to.at(r, c), value, scale, type);
          const std::uint8_t code = turned.values.tensor.as<std::uint8_t>()[c * kRows + r];
          different += code != codes[r * kColumns + c] ? 1 : 0;
          if (by_rows)
            expect_near(turned.at(c, r), value, turned.scales.tensor.as<float>()[kColumns + c],
                        type);
        }
      // One scale, one rounding; scales of rows are not those of columns.
      EXPECT_EQ(different > 0, by_rows);
    }
}

TEST(Fp8Product, is_that_of_the_numbers_which_its_operands_stand_for) {
  constexpr std::int64_t kRows = 16, kColumns = 32, kInner = 48;
  const Buffer x = uneven(kRows, kInner), w = uneven(kColumns, kInner);
  for (const bool by_rows : {false, true}) {
    const Operand a(kRows, kInner, DType::e5m2, by_rows), b(kColumns, kInner, DType::e4m3, by_rows);
    host::cast_fp8({.from = x.tensor, .to = a.of(), .type = DType::e5m2, .by_rows = by_rows});
    host::cast_fp8({.from = w.tensor, .to = b.of(), .by_rows = by_rows});
    Buffer c(kRows, kColumns, DType::f32), bias(1, kColumns, DType::f32);
    for (std::int64_t i = 0; i < kColumns; ++i) bias.tensor.as<float>()[i] = static_cast<float>(i);
    Fp8Product product{.c = c.tensor, .a = a.of(), .b = b.of(), .by_rows = by_rows};
    product.bias = bias.tensor;
    host::multiply_fp8(product);
    product.bias = {};
    product.accumulate = true;
    host::multiply_fp8(product);
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t j = 0; j < kColumns; ++j) {
        double sum = static_cast<double>(j), size = sum;
        for (std::int64_t k = 0; k < kInner; ++k) {
          const double term = static_cast<double>(a.at(r, k)) * static_cast<double>(b.at(j, k));
          sum += 2 * term;
          size += 2 * std::abs(term);
        }
        EXPECT_NEAR(c.tensor.as<float>()[r * kColumns + j], sum, 1e-6 * size);
      }
  }
}

}  // namespace
}  // namespace shardplan::validator::fp8_test
