// Products of bands of rows on the host: each is the product of its rows alone, to the bit.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/host/kernels.h"

namespace shardplan::validator::bands_test {
namespace {

constexpr std::int64_t kBands = 3, kRows = 5, kOutputs = 4, kInputs = 6;

struct Matrix {
  Matrix(std::int64_t rows, std::int64_t columns, std::uint32_t seed)
      : values(static_cast<std::size_t>(rows * columns)), shape{rows, columns} {
    std::minstd_rand random(seed);
    std::uniform_real_distribution<float> between(-1, 1);
    for (float& value : values) value = between(random);
  }
  Tensor all() { return {reinterpret_cast<std::uintptr_t>(values.data()), DType::f32, shape}; }
  Columns band(std::int64_t index, std::int64_t bands) {
    const std::int64_t rows = shape[0] / bands;
    const Tensor of = all().row_range(index * rows, rows);
    return {of, 0, of.width()};
  }
  std::vector<float> values;
  Shape shape;
};

/// How operands are turned, and whether the product is added.
struct Form {
  bool a_transposed, b_transposed, accumulate;
};

void expect_bands_are_products(Matrix a, Matrix b, Matrix c, const Form& form) {
  Matrix one_by_one = c;
  const auto product = [&](Matrix& to, std::int64_t index, std::int64_t of, std::int64_t bands) {
    host::multiply_columns({.c = to.band(index, of),
                            .a = a.band(index, of),
                            .b = b.band(index, of),
                            .a_transposed = form.a_transposed,
                            .b_transposed = form.b_transposed,
                            .scale = 0.5F,
                            .accumulate = form.accumulate,
                            .bands = bands});
  };
  product(c, 0, 1, kBands);
  for (std::int64_t i = 0; i < kBands; ++i) product(one_by_one, i, kBands, 1);
  EXPECT_EQ(c.values, one_by_one.values);
}

TEST(Bands, are_products_of_their_rows_alone) {
  for (const bool adds : {false, true}) {
    const Matrix x(kBands * kRows, kInputs, 1), w(kBands * kOutputs, kInputs, 2),
        y(kBands * kRows, kOutputs, 3);
    expect_bands_are_products(x, w, y, {false, true, adds});
    expect_bands_are_products(y, w, x, {false, false, adds});
    expect_bands_are_products(y, x, w, {true, false, adds});
  }
}

}  // namespace
}  // namespace shardplan::validator::bands_test
