// What the optimizer on the host does to flat ranges, in the instructions of several generations of
// CPUs: one source (loops.h), compiled once for each. All give the same bits: no sum is taken in
// another order, and no product is fused with a sum.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "memory/tensor.h"

namespace shardplan::validator::host {

/// AdamW's factors of one step, worked out once for all elements.
struct AdamWFactors {
  float gradient = 1;  ///< inverse loss scale and clipping
  float beta1 = 0.9F, beta2 = 0.999F;
  float decay = 1;         ///< 1 − learning rate · weight decay
  float step_size = 0;     ///< learning rate / (1 − β₁^step)
  float inverse_root = 1;  ///< 1 / √(1 − β₂^step)
  float epsilon = 1e-8F;
  std::uint64_t random = 0;  ///< what an element's index is mixed with (random.h)
};

/// Elements [0, count) of one range. Types are those of device/operands.h's AdamW.
struct AdamWRange {
  void* parameter = nullptr;
  float* master = nullptr;  ///< null: the parameter itself is updated
  const void* gradient = nullptr;
  void* first = nullptr;
  void* second = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;   ///< of parameter and gradient: fp32, bf16 or fp16
  DType states = DType::f32;  ///< of the moments: fp32 or bf16
  std::uint64_t first_element = 0;
  AdamWFactors factors;
};

/// Sums of squares go to as many lanes, element i to lane i mod kLanes, which are added in order.
inline constexpr std::int64_t kLanes = 16;
using Lanes = std::array<double, kLanes>;

/// A generation's functions. `x` and `to` have the type that is named.
struct Vectors {
  const char* name;
  void (*adamw)(const AdamWRange& range);
  void (*add)(void* to, const void* x, DType dtype, std::int64_t count);
  void (*squares)(Lanes& sums, const void* x, DType dtype, std::int64_t count);
};

extern const Vectors kScalarVectors, kAvx2Vectors, kAvx512Vectors;

/// Those that this machine runs, the best first; the scalar ones are always there.
std::span<const Vectors* const> vectors_of_this_machine();

/// Σ x² of a flat range, chunk by chunk: whoever sums which chunk, the result is the same.
inline constexpr std::int64_t kSumChunk = std::int64_t{1} << 16;
double chunk_of_squares(const Vectors& vectors, const Tensor& chunk);
double sum_of_squares(const Vectors& vectors, const Tensor& x);

}  // namespace shardplan::validator::host
