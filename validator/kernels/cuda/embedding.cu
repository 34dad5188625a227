#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 128;

template <class T, int W>
__global__ void embedding_forward_kernel(T* y, const std::int32_t* tokens, const T* table,
                                         const T* positions, int width, RowPlaces places) {
  const std::int64_t row = blockIdx.x;
  const int token = tokens[row];
  const T* from = table + std::int64_t{token} * width;
  const T* position = positions + places.of(row) * width;
  for (int col = static_cast<int>(threadIdx.x) * W; col < width; col += kThreads * W) {
    Pack<T, W> values = token < 0 ? zero_pack<T, W>() : load<W>(from + col);
    if (positions != nullptr) {
      const Pack<T, W> added = load<W>(position + col);
#pragma unroll
      for (int i = 0; i < W; ++i) values.set(i, values[i] + added[i]);
    }
    store<W>(y + row * width + col, values);
  }
}

}  // namespace

void embedding_forward(const Launch& launch, const Tensor& y, const Tensor& tokens,
                       const Tensor& table, const Tensor& positions, const RowPlaces& places) {
  for_dtype(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        y.width(),
        [&](auto width) {
          embedding_forward_kernel<T, decltype(width)::value>
              <<<static_cast<unsigned>(y.rows()), kThreads, 0, launch.stream>>>(
                  data<T>(y), data<std::int32_t>(tokens), data<T>(table), data<T>(positions),
                  static_cast<int>(y.width()), places);
        },
        y, table, positions);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
