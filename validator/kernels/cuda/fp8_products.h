// Products of matrices in 8-bit floating point, through cuBLASLt.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <map>
#include <memory>

#include "device/fp8.h"
#include "kernels/cuda/launch.h"

namespace shardplan::validator::cuda {

class Fp8Products {
 public:
  /// `handle` outlives it.
  Fp8Products(cublasLtHandle_t handle, int device);
  ~Fp8Products();
  Fp8Products(const Fp8Products&) = delete;
  Fp8Products& operator=(const Fp8Products&) = delete;

  /// Throws DeviceError where the GPU or cuBLASLt has no such product.
  void multiply(const Launch& launch, const Fp8Product& o);

 private:
  /// Column by column: c [m, n] = aᵀ b, a: [k, m], b: [k, n]. Hopper reads operands in fp8 so
  /// alone.
  struct Shape {
    DType c, a, b;
    std::int64_t m, n, k;
    bool bias;
    bool sums_tokens;
    bool accumulate;
    bool by_rows;
    bool fast;
    bool counted;  ///< tokens change from call to call
    friend auto operator<=>(const Shape&, const Shape&) = default;

    /// Whose algorithm it takes: where tokens change, that of their class (row_classes.h).
    Shape chosen_for() const;
  };
  struct Plan;

  /// With the operands of `o`, for which it chooses an algorithm the first time.
  Plan& plan_for(const Shape& shape, const Fp8Product& o);
  void choose(Plan& plan, const Shape& shape) const;
  /// Says why the GPU has none.
  void check_capability(bool by_rows) const;

  cublasLtHandle_t handle_;
  int device_;
  std::map<Shape, std::unique_ptr<Plan>> plans_;
};

}  // namespace shardplan::validator::cuda
