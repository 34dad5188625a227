// The gradient of a bias is a sum over rows in two halves: each block sums a band of rows, 32
// accesses wide, then column_sum.cuh adds the bands up.
#include <algorithm>

#include "kernels/cuda/column_sum.cuh"
#include "kernels/cuda/launchers.h"

namespace shardplan::validator::cuda {
namespace {

constexpr int kLanes = 8;  // rows that a block reads at once
constexpr int kMostBands = 512;
constexpr int kLeastRows = 64;  // of a band

template <class T, int W>
__global__ void bias_bands_kernel(const T* dy, std::int64_t rows, std::int64_t cols,
                                  std::int64_t band_rows, float* partial) {
  __shared__ float sums[kLanes][kWarp][W];
  const std::int64_t col = (std::int64_t{blockIdx.x} * kWarp + threadIdx.x) * W;
  const std::int64_t begin = std::int64_t{blockIdx.y} * band_rows;
  const std::int64_t end = min(begin + band_rows, rows);
  float total[W] = {};
  if (col < cols) {
#pragma unroll 4
    for (std::int64_t row = begin + threadIdx.y; row < end; row += kLanes) {
      const Pack<T, W> values = load<W>(dy + row * cols + col);
#pragma unroll
      for (int e = 0; e < W; ++e) total[e] += values[e];
    }
  }
#pragma unroll
  for (int e = 0; e < W; ++e) sums[threadIdx.y][threadIdx.x][e] = total[e];
  __syncthreads();
  if (threadIdx.y != 0 || col >= cols) return;
#pragma unroll
  for (int e = 0; e < W; ++e) {
#pragma unroll
    for (int lane = 1; lane < kLanes; ++lane) total[e] += sums[lane][threadIdx.x][e];
    partial[std::int64_t{blockIdx.y} * cols + col + e] = total[e];
  }
}

/// Bands of rows: enough blocks to fill the GPU, none with too few rows to be worth its partial.
int bands_of(std::int64_t rows, std::int64_t columns_of_blocks) {
  const std::int64_t wanted = ceil_div(kManyBlocks, columns_of_blocks);
  const std::int64_t most = ceil_div(rows, kLeastRows);
  return static_cast<int>(std::min({wanted, most, std::int64_t{kMostBands}}));
}

}  // namespace

void bias_backward(const Launch& launch, const Tensor& db, const Tensor& dy, bool accumulate) {
  const std::int64_t cols = dy.width();
  for_dtype(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        cols,
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          const std::int64_t columns = ceil_div(cols, kWarp * kW);
          const int bands = bands_of(dy.rows(), columns);
          float* partial = launch.scratch<float>(bands * cols);
          bias_bands_kernel<T, kW><<<dim3(static_cast<unsigned>(columns), bands),
                                     dim3(kWarp, kLanes), 0, launch.stream>>>(
              data<T>(dy), dy.rows(), cols, ceil_div(dy.rows(), bands), partial);
          check_launch();
          add_column_sums<T>(launch, partial, bands, cols, db, accumulate);
        },
        dy);
  });
}

std::int64_t bias_workspace(std::int64_t width) {
  // The widest accesses make the fewest columns of blocks, and so the most bands.
  const std::int64_t columns = std::max<std::int64_t>(ceil_div(width, kWarp * 8), 1);
  const int bands = bands_of(kMostBands * kLeastRows, columns);
  return bands * width * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace shardplan::validator::cuda
