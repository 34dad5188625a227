// Products of matrices in 8-bit floating point (OCP's OFP8: e4m3 and e5m2), as torchao 0.18 scales
// them (float8/float8_utils.py, amax_to_scale): elements are multiplied with the type's largest
// number over their largest magnitude, rounded, and the product's results are divided again.
#pragma once

#include <cstdint>

#include "device/operands.h"
#include "memory/tensor.h"

namespace shardplan::validator {

/// Which products of a block are in 8 bits, all of them or none, and how operands are scaled.
/// Inputs and weights are e4m3. Matrices of every kind have sides that 16 divides.
enum class Fp8Recipe : std::uint8_t {
  none,
  tensorwise,  ///< a scale for the matrix; gradients of results are e5m2
  rowwise,     ///< one for each row of an operand, a power of two; all are e4m3
};

/// The largest number of the type.
constexpr float largest_fp8(DType type) {
  return type == DType::e4m3 ? 448.0F : 57344.0F;
}
/// Magnitudes below it are taken for it where a scale is found.
inline constexpr double kLeastFp8Magnitude = 1e-12;

/// The code of the nearest number, of two alike the even one; what is too large becomes the
/// largest, NaN stays NaN.
std::uint8_t encode_fp8(float x, DType type);
float decode_fp8(std::uint8_t code, DType type);
/// What elements of at most this magnitude are multiplied with.
float fp8_scale(float magnitude, DType type, bool power_of_two);

/// An operand: `values` [rows, k] of either type, `scales` [2, 1] or [2, rows] fp32, at 16 bytes:
/// what results are multiplied with, then the reciprocals, which elements were multiplied with.
struct Fp8Matrix {
  Tensor values;
  Tensor scales;
};

/// Rounds a matrix, as it lies or turned or both. With a scale for all of it both have the same
/// one, of `to`.
struct Fp8Cast {
  Tensor from;       ///< [rows, columns]
  Fp8Matrix to;      ///< [rows, columns]; without values: they are not wanted
  Fp8Matrix turned;  ///< [columns, rows]; without values: they are not wanted
  DType type = DType::e4m3;
  bool by_rows = false;  ///< a scale for each row of what is written, a power of two
  bool scaled = false;   ///< the scales of all that is written are there already; else found here
};

/// What of a matrix has a scale of its own.
enum class Fp8Over : std::uint8_t { whole, rows, columns };

/// The largest magnitudes of a matrix. Where ranks have a part each of what a scale is for, each
/// finds those of its part, and the largest over the ranks make the scale.
struct Fp8Magnitudes {
  Tensor from;  ///< [rows, columns]
  Tensor to;    ///< [1], [rows] or [columns] fp32; what is not a number has no magnitude
  Fp8Over over = Fp8Over::whole;
};

/// The scales that the largest magnitudes over ranks make.
struct Fp8JointScales {
  Columns found;  ///< of [ranks, ...] fp32
  Tensor to;      ///< [2, found.count], as an Fp8Matrix has them
  DType type = DType::e4m3;
  bool power_of_two = false;
};

/// c (+)= a bᵀ (+ bias).
struct Fp8Product {
  Tensor c;     ///< [rows, columns], of 16 bits or more
  Fp8Matrix a;  ///< [rows, k]
  Fp8Matrix b;  ///< [columns, k]; not both are e5m2
  Tensor bias;  ///< [columns], or absent
  bool by_rows = false;
  bool sums_tokens = false;  ///< k counts tokens; else rows do
  bool accumulate = false;
  bool fast = false;     ///< sums may have fewer bits on the way, where units have such sums
  bool counted = false;  ///< of the rows that an expert was given: others the next time
};

}  // namespace shardplan::validator
