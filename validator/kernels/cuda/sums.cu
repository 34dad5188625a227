// Sums over a whole tensor, in two steps of a fixed order: each block's share in float, the blocks'
// sums in double.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocks = 4 * 132;

struct Identity {
  __device__ float operator()(float x) const { return x; }
};
struct Square {
  __device__ float operator()(float x) const { return x * x; }
};

template <class T, int W, class Term>
__global__ void block_sums_kernel(const T* x, std::int64_t packs, Term term, double* sums) {
  __shared__ float scratch[kThreads / kWarp];
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  float total[W] = {};
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs; i += step) {
    const Pack<T, W> values = load<W>(x + i * W);
#pragma unroll
    for (int e = 0; e < W; ++e) total[e] += term(values[e]);
  }
#pragma unroll
  for (int e = 1; e < W; ++e) total[0] += total[e];
  const float sum = block_reduce(total[0], Sum{}, 0.0F, scratch);
  if (threadIdx.x == 0) sums[blockIdx.x] = static_cast<double>(sum);
}

__global__ void total_kernel(float* out, const double* sums, int count, bool accumulate) {
  __shared__ double scratch[kThreads / kWarp];
  double total = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) total += sums[i];
  total = block_reduce(total, Sum{}, 0.0, scratch);
  if (threadIdx.x == 0) {
    *out = static_cast<float>(total + (accumulate ? static_cast<double>(*out) : 0.0));
  }
}

template <class Term>
void sum_of(const Launch& launch, const Tensor& out, const Tensor& x, bool accumulate) {
  double* sums = launch.scratch<double>(kBlocks);
  for_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        x.numel(),
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          block_sums_kernel<T, kW>
              <<<kBlocks, kThreads, 0, launch.stream>>>(data<T>(x), x.numel() / kW, Term{}, sums);
        },
        x);
  });
  check_launch();
  total_kernel<<<1, kThreads, 0, launch.stream>>>(data<float>(out), sums, kBlocks, accumulate);
  check_launch();
}

}  // namespace

void sum(const Launch& launch, const Tensor& out, const Tensor& x, bool accumulate) {
  sum_of<Identity>(launch, out, x, accumulate);
}

void squared_norm(const Launch& launch, const Tensor& out, const Tensor& x, bool accumulate) {
  sum_of<Square>(launch, out, x, accumulate);
}

std::int64_t sums_workspace() {
  return kBlocks * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace shardplan::validator::cuda
