#include "kernels/cuda/fp8_products.h"

#include <string>

#include "device/row_classes.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/matmul.h"

namespace shardplan::validator::cuda {
namespace {

constexpr std::size_t kCublasWithRowScales = 120900;  // CUDA 12.9's
constexpr std::int64_t kAlignment = 16;               // bytes, of every operand

#if CUBLAS_VERSION >= 120900
void scale_by_rows(cublasLtMatmulDesc_t description) {
  constexpr auto kRows = static_cast<std::int32_t>(CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
  set(description, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, kRows);
  set(description, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, kRows);
}
#else
void scale_by_rows(cublasLtMatmulDesc_t) {
  throw DeviceError("fp8 with a scale for each row wants cuBLAS of CUDA 12.9 or newer");
}
#endif

}  // namespace

Fp8Products::Shape Fp8Products::Shape::chosen_for() const {
  if (!counted) return *this;
  Shape shape = *this;
  std::int64_t& tokens = sums_tokens ? shape.k : shape.n;
  tokens = class_of_rows(tokens);
  return shape;
}

struct Fp8Products::Plan {
  explicit Plan(const Shape& shape)
      : a(shape.a, {shape.k, shape.m, shape.k}),
        b(shape.b, {shape.k, shape.n, shape.k}),
        c(shape.c, {shape.m, shape.n, shape.m}) {
    check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    set(description, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(description, CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    set(description, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(shape.fast));
    if (shape.by_rows) scale_by_rows(description);
    if (shape.bias) {
      set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, matmul_type(shape.c));
    }
  }
  ~Plan() { cublasLtMatmulDescDestroy(description); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Where the next product's scales are, and its bias.
  void read(const Fp8Product& o) {
    set(description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o.b.scales.data());
    set(description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o.a.scales.data());
    if (!o.bias.empty()) set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias.data());
  }

  /// For the tokens of `shape`, where the plan is that of their class.
  void resize(const Shape& shape) const {
    if (!shape.counted) return;
    a.resize({shape.k, shape.m, shape.k});
    b.resize({shape.k, shape.n, shape.k});
    c.resize({shape.m, shape.n, shape.m});
  }

  MatmulLayout a;
  MatmulLayout b;
  MatmulLayout c;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

Fp8Products::Fp8Products(cublasLtHandle_t handle, int device) : handle_(handle), device_(device) {}
Fp8Products::~Fp8Products() = default;

void Fp8Products::check_capability(bool by_rows) const {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_),
        "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device_),
        "cudaDeviceGetAttribute");
  const std::string here = std::to_string(major) + "." + std::to_string(minor);
  if (10 * major + minor < 89)
    throw DeviceError("products in fp8 want compute capability 8.9 or more; this GPU has " + here);
  if (!by_rows) return;
  if (10 * major + minor < 90)
    throw DeviceError("fp8 with a scale for each row wants compute capability 9.0; this GPU has " +
                      here);
  if (cublasLtGetVersion() < kCublasWithRowScales)
    throw DeviceError("fp8 with a scale for each row wants cuBLAS of CUDA 12.9 or newer");
}

void Fp8Products::choose(Plan& plan, const Shape& shape) const {
  const cublasStatus_t status = choose_algorithm(handle_, plan.description, plan.a, plan.b, plan.c,
                                                 Linear::kWorkspace, kAlignment, plan.algorithm);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError("cuBLASLt has no algorithm for a product in fp8" +
                      std::string(shape.by_rows ? " with a scale for each row" : "") + ": " +
                      cublasLtGetStatusString(status));
}

Fp8Products::Plan& Fp8Products::plan_for(const Shape& shape, const Fp8Product& o) {
  std::unique_ptr<Plan>& plan = plans_[shape];
  if (plan) {
    plan->read(o);
    return *plan;
  }
  check_capability(shape.by_rows);
  auto fresh = std::make_unique<Plan>(shape);
  fresh->read(o);
  choose(*fresh, shape);
  plan = std::move(fresh);
  return *plan;
}

void Fp8Products::multiply(const Launch& launch, const Fp8Product& o) {
  const Shape shape{.c = o.c.dtype,
                    .a = o.b.values.dtype,
                    .b = o.a.values.dtype,
                    .m = o.c.width(),
                    .n = o.c.rows(),
                    .k = o.a.values.width(),
                    .bias = !o.bias.empty(),
                    .sums_tokens = o.sums_tokens,
                    .accumulate = o.accumulate,
                    .by_rows = o.by_rows,
                    .fast = o.fast,
                    .counted = o.counted};
  const float alpha = 1.0F, beta = o.accumulate ? 1.0F : 0.0F;
  const auto run = [&](const Plan& plan) {
    plan.resize(shape);
    return cublasLtMatmul(handle_, plan.description, &alpha, o.b.values.data(), plan.a.layout,
                          o.a.values.data(), plan.b.layout, &beta, o.c.data(), plan.c.layout,
                          o.c.data(), plan.c.layout, &plan.algorithm,
                          launch.scratch<std::byte>(Linear::kWorkspace),
                          static_cast<std::size_t>(Linear::kWorkspace), launch.stream);
  };
  // An algorithm may ask for more of the sizes than those of the class tell.
  if (run(plan_for(shape.chosen_for(), o)) == CUBLAS_STATUS_SUCCESS) return;
  check(run(plan_for(shape, o)), "cublasLtMatmul in fp8");
}

}  // namespace shardplan::validator::cuda
