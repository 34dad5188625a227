// Weights in the 4-bit type of QLoRA (NF4, arXiv 2305.14314, appendix E), as bitsandbytes lays them
// out: two codes a byte, the first in its high half, and a scale for 64 elements. An element is its
// code's value times its scale. Scales are fp32, or a byte each (double quantization).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "memory/tensor.h"

namespace shardplan::validator {

inline constexpr std::int64_t kNf4Block = 64;        ///< elements that share a scale
inline constexpr std::int64_t kNf4ScaleBlock = 256;  ///< scales of a byte that share a scale
inline constexpr float kNf4ScaleSteps = 127;  ///< steps of such a scale from 0 to the largest

/// Quantiles of a normal distribution, so that each code is used as often; of them 0, and 1 at both
/// ends.
inline constexpr std::array<float, 16> kNf4Values{-1.0F,
                                                  -0.6961928009986877F,
                                                  -0.5250730514526367F,
                                                  -0.39491748809814453F,
                                                  -0.28444138169288635F,
                                                  -0.18477343022823334F,
                                                  -0.09105003625154495F,
                                                  0.0F,
                                                  0.07958029955625534F,
                                                  0.16093020141124725F,
                                                  0.24611230194568634F,
                                                  0.33791524171829224F,
                                                  0.44070982933044434F,
                                                  0.5626170039176941F,
                                                  0.7229568362236023F,
                                                  1.0F};

/// Between a code and the next: what is above it is nearer to the next.
constexpr float nf4_boundary(std::size_t code) {
  return (kNf4Values[code] + kNf4Values[code + 1]) / 2;
}

/// A matrix of n elements, row by row, in b = ⌈n / 64⌉ blocks.
struct Nf4Matrix {
  Tensor codes;   ///< [⌈n / 2⌉] int8
  Tensor scales;  ///< [b] fp32; with `outer`: int8
  /// [1 + ⌈b / 256⌉] fp32, or absent: the mean of the scales, then what each 256 of them are
  /// multiplied with. Scale i is outer[0] + outer[1 + i / 256] · scales[i].
  Tensor outer;
};

}  // namespace shardplan::validator
