// Matrices rounded to 8 bits, and their products.
#include <fmt/core.h>

#include "kernel_check/checks.h"

namespace shardplan::validator {
namespace {

/// Fast sums have about 14 bits on Hopper (arXiv 2412.19437, 3.3.2), less than tolerances for sums
/// in fp32 take for granted: 8.8e-4 was measured in fp16, where slow sums are within 8e-4.
constexpr double kFastSlack = 2;

/// An operand on both sides.
struct Fp8Pair {
  Pair values, scales;
  Fp8Matrix of(const Side& side) const { return {side(values), side(scales)}; }
};

Fp8Pair operand(Laboratory& lab, std::int64_t rows, std::int64_t columns, DType type,
                bool by_rows) {
  return {lab.narrow({rows, columns}, type), lab.scales({2, by_rows ? rows : 1})};
}

/// As it lies and turned, each alone and, with one scale, both at once.
void check_casts(Laboratory& lab, DType dtype, std::int64_t rows, std::int64_t columns, DType type,
                 bool by_rows) {
  lab.begin("cast to fp8",
            fmt::format("{} × {}, {}{}", rows, columns, shardplan::name_of(type).substr(4),
                        by_rows ? ", by rows" : ""),
            dtype);
  const Pair x = lab.normal({rows, columns}, 3.0);
  const Fp8Pair to = operand(lab, rows, columns, type, by_rows);
  const Fp8Pair turned = operand(lab, columns, rows, type, by_rows);
  const Fp8Pair both = operand(lab, rows, columns, type, by_rows);
  const Fp8Pair both_turned = operand(lab, columns, rows, type, by_rows);
  lab.run(
      [&](Backend& backend, const Side& of) {
        Fp8Cast cast{.from = of(x), .to = to.of(of), .type = type, .by_rows = by_rows};
        backend.cast_fp8(cast);
        cast.to = by_rows ? Fp8Matrix{} : Fp8Matrix{{}, of(to.scales)};
        cast.turned = turned.of(of);
        cast.scaled = !by_rows;
        backend.cast_fp8(cast);
        backend.cast_fp8({.from = of(x),
                          .to = both.of(of),
                          .turned = both_turned.of(of),
                          .type = type,
                          .by_rows = by_rows});
      },
      {{"scales", to.scales},
       {"as it lies", to.values},
       {"turned", turned.values},
       {"both: as it lies", both.values},
       {"both: turned", both_turned.values}},
      1e-6);  // the same bits
}

/// What ranks find of their parts, and the scales that they make of it together.
void check_joint(Laboratory& lab, DType dtype, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kRanks = 3;
  lab.begin("scales of ranks for fp8", fmt::format("{} × {}", rows, columns), dtype);
  const Pair x = lab.normal({rows, columns}, 3.0);
  const std::int64_t all = 1 + rows + columns;
  const Pair found = lab.scales({kRanks, all}), one = lab.scales({2, 1});
  const Pair of_rows = lab.scales({2, rows}), of_columns = lab.scales({2, columns});
  const Fp8Pair by_rows{lab.narrow({rows, columns}, DType::e4m3), of_rows};
  const Fp8Pair by_columns{lab.narrow({columns, rows}, DType::e4m3), of_columns};
  lab.run(
      [&](Backend& backend, const Side& of) {
        const Tensor numbers = of(found);
        backend.fill(numbers, 9.5F);  // of other ranks: between those that are found
        const Tensor here = numbers.slice(all, all);
        backend.find_magnitudes({.from = of(x), .to = here.slice(0, 1), .over = Fp8Over::whole});
        backend.find_magnitudes({.from = of(x), .to = here.slice(1, rows), .over = Fp8Over::rows});
        backend.find_magnitudes(
            {.from = of(x), .to = here.slice(1 + rows, columns), .over = Fp8Over::columns});
        backend.join_scales({.found = {numbers, 0, 1}, .to = of(one), .type = DType::e5m2});
        backend.join_scales({.found = {numbers, 1, rows}, .to = of(of_rows), .power_of_two = true});
        backend.join_scales(
            {.found = {numbers, 1 + rows, columns}, .to = of(of_columns), .power_of_two = true});
        backend.cast_fp8({.from = of(x),
                          .to = by_rows.of(of),
                          .turned = by_columns.of(of),
                          .by_rows = true,
                          .scaled = true});
      },
      {{"found", found},
       {"of all", one},
       {"of rows", of_rows},
       {"of columns", of_columns},
       {"as it lies", by_rows.values},
       {"turned", by_columns.values}},
      1e-6);  // the same bits
}

void check_fp8_product(Laboratory& lab, DType dtype, std::int64_t rows, std::int64_t inputs,
                       std::int64_t outputs, bool by_rows) {
  const char* how = by_rows ? ", by rows" : "";
  lab.begin("product in fp8", fmt::format("{} × {} → {}{}", rows, inputs, outputs, how), dtype);
  const DType slopes = by_rows ? DType::e4m3 : DType::e5m2;
  const Pair x = lab.normal({rows, inputs}), w = lab.normal({outputs, inputs}, 0.05);
  const Pair dy = lab.normal({rows, outputs}, 1e-4), bias = lab.normal({outputs});
  const Fp8Pair a = operand(lab, rows, inputs, DType::e4m3, by_rows);
  const Fp8Pair b = operand(lab, outputs, inputs, DType::e4m3, by_rows);
  const Fp8Pair a_turned = operand(lab, inputs, rows, DType::e4m3, by_rows);
  const Fp8Pair b_turned = operand(lab, inputs, outputs, DType::e4m3, by_rows);
  const Fp8Pair slope = operand(lab, rows, outputs, slopes, by_rows);
  const Fp8Pair slope_turned = operand(lab, outputs, rows, slopes, by_rows);
  const Pair y = lab.output({rows, outputs}), y_biased = lab.output({rows, outputs});
  const Pair y_slow = lab.output({rows, outputs}), dx = lab.output({rows, inputs});
  const Pair dw = lab.output({outputs, inputs}), dw_sum = lab.normal({outputs, inputs}, 1e-3);
  lab.run(
      [&](Backend& backend, const Side& of) {
        const auto cast = [&](const Pair& from, const Fp8Pair& to, const Fp8Pair& turned,
                              DType type) {
          backend.cast_fp8(
              {.from = of(from),
               .to = to.of(of),
               .turned = by_rows ? turned.of(of) : Fp8Matrix{of(turned.values), of(to.scales)},
               .type = type,
               .by_rows = by_rows});
        };
        cast(x, a, a_turned, DType::e4m3);
        cast(w, b, b_turned, DType::e4m3);
        cast(dy, slope, slope_turned, slopes);
        const auto turned_of = [&](const Fp8Pair& turned, const Fp8Pair& to) {
          return by_rows ? turned.of(of) : Fp8Matrix{of(turned.values), of(to.scales)};
        };
        Fp8Product product{
            .c = of(y), .a = a.of(of), .b = b.of(of), .by_rows = by_rows, .fast = true};
        backend.multiply_fp8(product);
        product.c = of(y_biased);
        product.bias = of(bias);
        backend.multiply_fp8(product);
        product = {.c = of(y_slow), .a = a.of(of), .b = b.of(of), .by_rows = by_rows};
        backend.multiply_fp8(product);
        backend.multiply_fp8(
            {.c = of(dx), .a = slope.of(of), .b = turned_of(b_turned, b), .by_rows = by_rows});
        product = {.c = of(dw),
                   .a = turned_of(slope_turned, slope),
                   .b = turned_of(a_turned, a),
                   .by_rows = by_rows,
                   .sums_tokens = true};
        backend.multiply_fp8(product);
        product.c = of(dw_sum);
        product.accumulate = true;
        backend.multiply_fp8(product);
      },
      {{"y, fast sums", y, kFastSlack},
       {"y + bias, fast sums", y_biased, kFastSlack},
       {"y, slow sums", y_slow},
       {"dx", dx},
       {"dw", dw},
       {"dw +=", dw_sum}});
}

}  // namespace

void check_fp8(Laboratory& lab, DType dtype) {
  if (dtype == DType::f32) return;  // the engine has them beside 16 bits alone
  check_joint(lab, dtype, 256, 512);
  check_joint(lab, dtype, 144, 1104);
  for (const bool by_rows : {false, true}) {
    for (const DType type : {DType::e4m3, DType::e5m2}) {
      check_casts(lab, dtype, 256, 512, type, by_rows);
      check_casts(lab, dtype, 144, 1104, type, by_rows);  // no whole tiles
      check_casts(lab, dtype, 16, 48, type, by_rows);
    }
    check_fp8_product(lab, dtype, 256, 512, 384, by_rows);
    check_fp8_product(lab, dtype, 1040, 2064, 176, by_rows);
    check_fp8_product(lab, dtype, 16, 48, 80, by_rows);
    // As experts are given them: counts that share what was chosen for the largest.
    for (const std::int64_t rows : {576, 528})
      check_fp8_product(lab, dtype, rows, 512, 384, by_rows);
  }
}

}  // namespace shardplan::validator
