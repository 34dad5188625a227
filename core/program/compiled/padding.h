// Rows that Inductor lengthens so that products read and write them aligned.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "formats/dtype.h"

namespace shardplan::compiled {

/// Elements of a row that products read whole (torch/_inductor/fx_passes/pad_mm.py,
/// get_alignment_size: 8 in 16 bits, 4 in 32).
inline std::int64_t padded_columns(std::int64_t columns, DType type) {
  constexpr std::int64_t kAligned = 16;  // bytes
  return round_up(columns, kAligned / size_of(type));
}

struct ProductSize {
  std::int64_t rows, summed, columns;
};

/// Whether both ways are timed, of which the faster is taken: where arithmetic limits the product
/// (pad_mm.py, is_mm_compute_bound). The larger need is that of longer rows. `balance`: FLOP a byte
/// that the GPU can do.
inline bool may_be_padded(const ProductSize& p, double balance) {
  const auto inverse = [](std::int64_t n) { return 1 / static_cast<double>(n); };
  return 1 / (inverse(p.rows) + inverse(p.summed) + inverse(p.columns)) > balance / 2;
}

/// Whether both products that read a gradient of such rows take a copy with longer ones: of a
/// network's head without a bias, or where rows are odd, so that not even two elements are read at
/// once. In 16 bits, from runs of Llama, Granite, GPT-2, RoBERTa (odd) and BERT (even, with a bias:
/// only the product for the input takes one). Inductor's timings on an H200 say the same: of
/// XLM-RoBERTa (250,002 rows) the weight's product takes 4.4 ms and 7.1 with a copy, that for the
/// input 4.8 and 1.8.
inline bool both_take_copies(std::int64_t columns, bool has_bias) {
  return !has_bias || columns % 2 != 0;
}

/// Elements from row to row of what a kernel of Inductor's writes
/// (torch/_inductor/config.py, padding_alignment_bytes and padding_stride_threshold).
inline std::int64_t row_stride(std::int64_t columns, DType type) {
  constexpr std::int64_t kAligned = 128;  // bytes
  constexpr std::int64_t kShort = 1024;   // elements
  return columns <= kShort ? columns : round_up(columns, kAligned / size_of(type));
}

}  // namespace shardplan::compiled
