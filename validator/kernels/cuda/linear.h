// Matrix products of linear layers, through cuBLASLt. Sums are kept in fp32; fp32 operands are
// multiplied in fp32, not TF32.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <map>
#include <memory>

#include "device/operands.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul.h"

namespace shardplan::validator::cuda {

class Linear {
 public:
  Linear();
  ~Linear();
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  void forward(const Launch& launch, const Tensor& y, const Tensor& x, const Tensor& w,
               const Tensor& bias);
  void backward_input(const Launch& launch, const Tensor& dx, const Tensor& dy, const Tensor& w);
  void backward_weight(const Launch& launch, const Tensor& dw, const Tensor& dy, const Tensor& x,
                       bool accumulate);
  void multiply_columns(const Launch& launch, const ColumnProduct& o);

  cublasLtHandle_t handle() const { return handle_; }

  /// What cuBLAS's documentation asks for on this architecture.
  static constexpr std::int64_t kWorkspace = std::int64_t{32} << 20;

 private:
  /// c[n, m] (row-major) = op(a) op(b) in cuBLAS's column-major sense: m × k by k × n. Tokens are
  /// the rows of c, or what is summed over where b is transposed.
  struct Shape {
    DType dtype;
    bool transpose_a;
    bool transpose_b;
    bool bias;
    bool accumulate;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::int64_t a_stride;  ///< elements from one row to the next
    std::int64_t b_stride;
    std::int64_t c_stride;
    std::int64_t alignment;  ///< bytes, of the least aligned operand
    std::int64_t bands = 1;  ///< as many products, of the elements behind those of the one before
    bool counted = false;    ///< tokens change from call to call
    friend auto operator<=>(const Shape&, const Shape&) = default;

    /// Whose algorithm it takes: where tokens change, that of their class (row_classes.h).
    Shape chosen_for() const;
  };
  struct Plan;

  void multiply(const Launch& launch, const Shape& shape, const Tensor& c, const Tensor& a,
                const Tensor& b, const Tensor& bias, float scale = 1);
  Plan& plan_for(const Shape& shape);
  Tiles tiles_of(const Shape& shape) const;

  cublasLtHandle_t handle_ = nullptr;
  bool hopper_ = false;  ///< compute capability 9.0
  /// The heuristic's choice, asked for once a shape, or once a class of them.
  std::map<Shape, std::unique_ptr<Plan>> plans_;
};

}  // namespace shardplan::validator::cuda
