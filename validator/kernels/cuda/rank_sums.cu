// Sums of what several ranks on this GPU have, in rank order.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
struct Parts {
  const T* of[kMostRanksOfAGpu];
  int count;
};

/// `to` may be one of the parts: each element is read before it is written.
template <class T, int W>
__global__ void rank_sum_kernel(T* to, Parts<T> parts, std::int64_t packs) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < packs; i += step) {
    float total[W] = {};
    for (int rank = 0; rank < parts.count; ++rank) {
      const Pack<T, W> values = load<W>(parts.of[rank] + i * W);
#pragma unroll
      for (int e = 0; e < W; ++e) total[e] += values[e];
    }
    Pack<T, W> sum;
#pragma unroll
    for (int e = 0; e < W; ++e) sum.set(e, total[e]);
    store<W>(to + i * W, sum);
  }
}

}  // namespace

void rank_sum(cudaStream_t stream, const Tensor& to, std::span<const Tensor> parts) {
  if (parts.size() > kMostRanksOfAGpu)
    throw DeviceError("at most " + std::to_string(kMostRanksOfAGpu) + " ranks share a GPU");
  for_dtype(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    Parts<T> args{.count = static_cast<int>(parts.size())};
    bool aligned = true;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      args.of[i] = data<T>(parts[i]);
      aligned = aligned && parts[i].address % 16 == 0;
    }
    for_width<T>(
        aligned ? to.numel() : 1,
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          const std::int64_t packs = to.numel() / kW;
          rank_sum_kernel<T, kW>
              <<<grid_for(packs, kThreads), kThreads, 0, stream>>>(data<T>(to), args, packs);
        },
        to);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
