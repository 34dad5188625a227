#include "kernels/cuda/linear.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "device/row_classes.h"
#include "kernels/cuda/matmul.h"

namespace shardplan::validator::cuda {
namespace {

/// The largest power of two, 256 at most, that divides every address.
std::int64_t common_alignment(std::initializer_list<const Tensor*> tensors) {
  std::uintptr_t bits = 256;
  for (const Tensor* tensor : tensors) {
    if (!tensor->empty()) bits |= tensor->address;
  }
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

}  // namespace

Linear::Shape Linear::Shape::chosen_for() const {
  if (!counted) return *this;
  Shape shape = *this;
  std::int64_t& tokens = transpose_b ? shape.k : shape.n;
  tokens = class_of_rows(tokens);
  return shape;
}

struct Linear::Plan {
  explicit Plan(const Shape& shape)
      : a(shape.dtype, extent_of_a(shape)),
        b(shape.dtype, extent_of_b(shape)),
        c(shape.dtype, extent_of_c(shape)) {
    check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    set(description, CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(description, CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (shape.bias) {
      set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, matmul_type(shape.dtype));
    }
  }
  ~Plan() { cublasLtMatmulDescDestroy(description); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  static MatmulExtent extent_of_a(const Shape& s) {
    return s.transpose_a ? MatmulExtent{s.k, s.m, s.a_stride, s.bands}
                         : MatmulExtent{s.m, s.k, s.a_stride, s.bands};
  }
  static MatmulExtent extent_of_b(const Shape& s) {
    return s.transpose_b ? MatmulExtent{s.n, s.k, s.b_stride, s.bands}
                         : MatmulExtent{s.k, s.n, s.b_stride, s.bands};
  }
  static MatmulExtent extent_of_c(const Shape& s) { return {s.m, s.n, s.c_stride, s.bands}; }

  /// For the tokens of `shape`, where the plan is that of their class.
  void resize(const Shape& shape) const {
    if (!shape.counted) return;
    a.resize(extent_of_a(shape));
    b.resize(extent_of_b(shape));
    c.resize(extent_of_c(shape));
  }

  MatmulLayout a;
  MatmulLayout b;
  MatmulLayout c;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

Linear::Linear() {
  check(cublasLtCreate(&handle_), "cublasLtCreate");
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
        "cudaDeviceGetAttribute");
  hopper_ = major == 9 && minor == 0;
}
Linear::~Linear() {
  cublasLtDestroy(handle_);
}

void Linear::forward(const Launch& launch, const Tensor& y, const Tensor& x, const Tensor& w,
                     const Tensor& bias) {
  const Shape shape{.dtype = y.dtype,
                    .transpose_a = true,
                    .transpose_b = false,
                    .bias = !bias.empty(),
                    .accumulate = false,
                    .m = y.width(),
                    .n = y.rows(),
                    .k = x.width(),
                    .a_stride = w.width(),
                    .b_stride = x.width(),
                    .c_stride = y.width(),
                    .alignment = common_alignment({&y, &x, &w, &bias})};
  multiply(launch, shape, y, w, x, bias);
}

void Linear::backward_input(const Launch& launch, const Tensor& dx, const Tensor& dy,
                            const Tensor& w) {
  const Shape shape{.dtype = dx.dtype,
                    .transpose_a = false,
                    .transpose_b = false,
                    .bias = false,
                    .accumulate = false,
                    .m = dx.width(),
                    .n = dx.rows(),
                    .k = dy.width(),
                    .a_stride = w.width(),
                    .b_stride = dy.width(),
                    .c_stride = dx.width(),
                    .alignment = common_alignment({&dx, &dy, &w})};
  multiply(launch, shape, dx, w, dy, {});
}

void Linear::backward_weight(const Launch& launch, const Tensor& dw, const Tensor& dy,
                             const Tensor& x, bool accumulate) {
  const Shape shape{.dtype = dw.dtype,
                    .transpose_a = false,
                    .transpose_b = true,
                    .bias = false,
                    .accumulate = accumulate,
                    .m = x.width(),
                    .n = dy.width(),
                    .k = x.rows(),
                    .a_stride = x.width(),
                    .b_stride = dy.width(),
                    .c_stride = dw.width(),
                    .alignment = common_alignment({&dw, &dy, &x})};
  multiply(launch, shape, dw, x, dy, {});
}

void Linear::multiply_columns(const Launch& launch, const ColumnProduct& o) {
  // Of a matrix the elements from the first one of its columns on.
  const auto from = [](const Columns& x) { return x.of.slice(x.first, x.of.numel() - x.first); };
  const Tensor c = from(o.c), a = from(o.a), b = from(o.b);
  const auto rows = [&](const Columns& x) { return x.of.rows() / o.bands; };
  std::int64_t alignment = common_alignment({&c, &a, &b});
  if (o.bands > 1)  // each band begins where the one before ends
    for (const Columns* x : {&o.c, &o.a, &o.b})
      alignment = std::gcd(alignment, rows(*x) * x->of.width() * size_of(o.c.of.dtype));
  // Row by row c is cᵀ = bᵀ aᵀ column by column.
  const Shape shape{.dtype = o.c.of.dtype,
                    .transpose_a = o.b_transposed,
                    .transpose_b = o.a_transposed,
                    .bias = false,
                    .accumulate = o.accumulate,
                    .m = o.c.count,
                    .n = rows(o.c),
                    .k = o.b_transposed ? o.b.count : rows(o.b),
                    .a_stride = o.b.of.width(),
                    .b_stride = o.a.of.width(),
                    .c_stride = o.c.of.width(),
                    .alignment = alignment,
                    .bands = o.bands,
                    .counted = o.counted};
  multiply(launch, shape, c, b, a, {}, o.scale);
}

/// Large products of 16 bits are bound by the GPU's power limit, not by their clocks: of what
/// cuBLAS 13.1 offers an H100 or H200 for those of Llama-2-7B, tiles of 256 × 128 are up to 4 %
/// faster at 700 W than the 192 × 192 and 320 × 128 that the heuristic prefers where a product has
/// many (docs/evidence/engine.md, "Where a step's time goes").
Tiles Linear::tiles_of(const Shape& shape) const {
  constexpr std::int64_t kMultiprocessors = 132, kTile = 256 * 128, kMany = 10;
  const bool many =
      shape.bands == 1 && !shape.counted && shape.m * shape.n >= kMany * kMultiprocessors * kTile;
  return hopper_ && size_of(shape.dtype) == 2 && many ? Tiles::even : Tiles::any;
}

Linear::Plan& Linear::plan_for(const Shape& shape) {
  std::unique_ptr<Plan>& plan = plans_[shape];
  if (plan) return *plan;
  auto fresh = std::make_unique<Plan>(shape);
  check(choose_algorithm(handle_, fresh->description, fresh->a, fresh->b, fresh->c, kWorkspace,
                         shape.alignment, fresh->algorithm, tiles_of(shape)),
        "cublasLtMatmulAlgoGetHeuristic");
  plan = std::move(fresh);
  return *plan;
}

void Linear::multiply(const Launch& launch, const Shape& shape, const Tensor& c, const Tensor& a,
                      const Tensor& b, const Tensor& bias, float scale) {
  const float beta = shape.accumulate ? 1.0F : 0.0F;
  const auto run = [&](const Plan& plan) {
    if (shape.bias) set(plan.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.data());
    plan.resize(shape);
    return cublasLtMatmul(handle_, plan.description, &scale, a.data(), plan.a.layout, b.data(),
                          plan.b.layout, &beta, c.data(), plan.c.layout, c.data(), plan.c.layout,
                          &plan.algorithm, launch.scratch<std::byte>(kWorkspace),
                          static_cast<std::size_t>(kWorkspace), launch.stream);
  };
  // An algorithm may ask for more of the sizes than those of the class tell.
  if (run(plan_for(shape.chosen_for())) == CUBLAS_STATUS_SUCCESS) return;
  check(run(plan_for(shape)), "cublasLtMatmul");
}

}  // namespace shardplan::validator::cuda
