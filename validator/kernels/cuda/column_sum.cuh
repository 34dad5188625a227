// The second half of a sum over rows: partial rows in float are added up, in order, into a
// gradient. Used by the norms and the bias gradients.
#pragma once

#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {

/// gradient[c] (+)= sum over r of partial[r * stride + c]
template <class T>
__global__ void add_column_sums_kernel(const float* partial, int rows, std::int64_t stride,
                                       std::int64_t cols, T* gradient, bool accumulate) {
  constexpr int kLanes = 8;  // rows that a block reads at once
  __shared__ float sums[kLanes][kWarp];
  const std::int64_t col = std::int64_t{blockIdx.x} * kWarp + threadIdx.x;
  float sum = 0.0F;
  if (col < cols) {
#pragma unroll 4
    for (int row = static_cast<int>(threadIdx.y); row < rows; row += kLanes) {
      sum += partial[row * stride + col];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || col >= cols) return;
#pragma unroll
  for (int lane = 1; lane < kLanes; ++lane) sum += sums[lane][threadIdx.x];
  gradient[col] = from_float<T>(accumulate ? to_float(gradient[col]) + sum : sum);
}

template <class T>
void add_column_sums(const Launch& launch, const float* partial, int rows, std::int64_t stride,
                     const Tensor& gradient, bool accumulate) {
  const std::int64_t cols = gradient.numel();
  if (cols == 0) return;  // of what is frozen
  add_column_sums_kernel<<<static_cast<unsigned>(ceil_div(cols, kWarp)), dim3(kWarp, 8), 0,
                           launch.stream>>>(partial, rows, stride, cols, data<T>(gradient),
                                            accumulate);
  check_launch();
}

}  // namespace shardplan::validator::cuda
