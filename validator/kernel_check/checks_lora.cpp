// Products of columns, for adapters; matrices of 4 bits.
#include <fmt/core.h>

#include "kernel_check/checks.h"

namespace shardplan::validator {
namespace {

/// One of two adapted layers of a fused matrix, forward and backward.
void check_adapter(Laboratory& lab, DType dtype, std::int64_t rows, std::int64_t width,
                   std::int64_t rank) {
  lab.begin("adapters", fmt::format("{} × {}, rank {}", rows, width, rank), dtype);
  const std::int64_t all = 3 * width;
  const Pair low = lab.normal({rows, 2 * rank});
  const Pair b = lab.normal({width, rank}, 0.1);
  const Pair a = lab.normal({2 * rank, width}, 0.1);
  const Pair y = lab.normal({rows, all});
  const Pair dy = lab.normal({rows, all});
  const Pair db = lab.output({width, rank});
  const Pair db_sum = lab.normal({width, rank});
  const Pair dlow = lab.normal({rows, 2 * rank});
  const Pair dx = lab.normal({rows, width});
  lab.run(
      [&](Backend& backend, const Side& of) {
        const auto whole = [](const Tensor& x) { return Columns{x, 0, x.width()}; };
        const Columns second_low{of(low), rank, rank}, second{of(dy), 2 * width, width};
        backend.multiply_columns({.c = {of(y), 2 * width, width},
                                  .a = second_low,
                                  .b = whole(of(b)),
                                  .b_transposed = true,
                                  .scale = 2,
                                  .accumulate = true});
        ColumnProduct slope{
            .c = whole(of(db)), .a = second, .b = second_low, .a_transposed = true, .scale = 2};
        backend.multiply_columns(slope);
        slope.c = whole(of(db_sum));
        slope.accumulate = true;
        backend.multiply_columns(slope);
        backend.multiply_columns(
            {.c = {of(dlow), rank, rank}, .a = second, .b = whole(of(b)), .scale = 0.5F});
        backend.multiply_columns(
            {.c = whole(of(dx)), .a = whole(of(low)), .b = whole(of(a)), .accumulate = true});
      },
      {{"y +=", y}, {"db", db}, {"db +=", db_sum}, {"dlow", dlow}, {"dx +=", dx}});
}

/// Of several experts at once, whose rows and matrices lie one behind the other.
void check_bands(Laboratory& lab, DType dtype, std::int64_t bands, std::int64_t rows,
                 std::int64_t outputs, std::int64_t inputs) {
  lab.begin("products in bands", fmt::format("{} of {} × {} × {}", bands, rows, outputs, inputs),
            dtype);
  const Pair x = lab.normal({bands * rows, inputs});
  const Pair w = lab.normal({bands * outputs, inputs}, 0.1);
  const Pair y = lab.output({bands * rows, outputs});
  const Pair sum = lab.normal({bands * rows, outputs});
  const Pair dy = lab.normal({bands * rows, outputs});
  const Pair dx = lab.output({bands * rows, inputs});
  const Pair dw = lab.output({bands * outputs, inputs});
  lab.run(
      [&](Backend& backend, const Side& of) {
        const auto whole = [&](const Pair& p) { return Columns{of(p), 0, of(p).width()}; };
        ColumnProduct forward{
            .c = whole(y), .a = whole(x), .b = whole(w), .b_transposed = true, .bands = bands};
        backend.multiply_columns(forward);
        forward.c = whole(sum);
        forward.scale = 0.5F;
        forward.accumulate = true;
        backend.multiply_columns(forward);
        backend.multiply_columns({.c = whole(dx), .a = whole(dy), .b = whole(w), .bands = bands});
        backend.multiply_columns(
            {.c = whole(dw), .a = whole(dy), .b = whole(x), .a_transposed = true, .bands = bands});
      },
      {{"y", y}, {"y +=", sum}, {"dx", dx}, {"dw", dw}});
}

Pair random_bytes(Laboratory& lab, std::int64_t count) {
  std::vector<std::int32_t> words(static_cast<std::size_t>((count + 3) / 4));
  for (std::int32_t& word : words)
    word = lab.random_below(1 << 16) << 15 ^ lab.random_below(1 << 16);
  return lab.integers(words);
}

void check_nf4(Laboratory& lab, DType dtype, std::int64_t count, bool doubled) {
  lab.begin("4 bits to elements", fmt::format("{}{}", count, doubled ? ", doubled" : ""), dtype);
  const std::int64_t blocks = (count + kNf4Block - 1) / kNf4Block;
  const Pair codes = random_bytes(lab, count / 2 + 1);
  const Pair scales = doubled ? random_bytes(lab, blocks) : lab.master({blocks});
  const Pair outer = lab.master({1 + (blocks + kNf4ScaleBlock - 1) / kNf4ScaleBlock});
  const Pair wide = lab.output({count});
  lab.run(
      [&](Backend& backend, const Side& of) {
        const auto bytes = [](const Tensor& x, std::int64_t length) {
          return Tensor{x.address, DType::i8, Shape{length}};
        };
        backend.widen(of(wide), {.codes = bytes(of(codes), (count + 1) / 2),
                                 .scales = doubled ? bytes(of(scales), blocks) : of(scales),
                                 .outer = doubled ? of(outer) : Tensor{}});
      },
      {{"elements", wide}});
}

/// To the bit: whoever rounds a matrix, it is the same. Bytes are compared in words.
void check_quantize(Laboratory& lab, DType dtype, std::int64_t count, bool doubled) {
  lab.begin("elements to 4 bits", fmt::format("{}{}", count, doubled ? ", doubled" : ""), dtype);
  const std::int64_t blocks = (count + kNf4Block - 1) / kNf4Block;
  const std::int64_t groups = (blocks + kNf4ScaleBlock - 1) / kNf4ScaleBlock;
  const auto words = [&](std::int64_t bytes) {
    return lab.integers(std::vector<std::int32_t>(static_cast<std::size_t>((bytes + 3) / 4), 0));
  };
  const Pair from = lab.normal({count}, 0.02);
  const Pair codes = words((count + 1) / 2), scales = words(doubled ? blocks : 4 * blocks),
             outer = words(4 * (1 + groups));
  std::vector<Laboratory::Result> results{{"codes", codes}, {"scales", scales}};
  if (doubled) results.push_back({"scales of scales", outer});
  lab.run(
      [&](Backend& backend, const Side& of) {
        const auto as = [&](const Pair& x, DType type, std::int64_t length) {
          return Tensor{of(x).address, type, Shape{length}};
        };
        backend.quantize({.codes = as(codes, DType::i8, (count + 1) / 2),
                          .scales = as(scales, doubled ? DType::i8 : DType::f32, blocks),
                          .outer = doubled ? as(outer, DType::f32, 1 + groups) : Tensor{}},
                         of(from));
      },
      results, 0);
}

}  // namespace

void check_adapters(Laboratory& lab, DType dtype) {
  check_adapter(lab, dtype, 300, 256, 16);
  check_adapter(lab, dtype, 129, 96, 8);
  check_adapter(lab, dtype, 65, 20, 3);  // no aligned columns
  check_bands(lab, dtype, 8, 80, 192, 128);
  check_bands(lab, dtype, 60, 33, 16, 96);
  check_bands(lab, dtype, 3, 7, 5, 9);  // no aligned bands
  for (const bool doubled : {false, true})
    for (const std::int64_t count : {64 * 700, 64 * 3 + 8, 101})
      check_nf4(lab, dtype, count, doubled);
  for (const bool doubled : {false, true})
    for (const std::int64_t count : {64 * 256 * 40, 64 * 700, 64 * 3 + 8, 101})
      check_quantize(lab, dtype, count, doubled);
}

}  // namespace shardplan::validator
