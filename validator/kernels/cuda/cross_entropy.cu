// One block a row. The row is read twice, the second time mostly from the L2 cache, and overwritten
// by its gradient; the logits are the only large tensor of the loss.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 1024;

/// The largest logit seen, and the sum of exp(logit - largest).
struct Softmax {
  float largest;
  float sum;
};

__device__ Softmax merge(Softmax a, Softmax b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, 0.0F};
  return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

__device__ Softmax warp_merge(Softmax value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Softmax other = {__shfl_xor_sync(0xffffffffU, value.largest, offset),
                           __shfl_xor_sync(0xffffffffU, value.sum, offset)};
    // The lower lane's value always comes first, so that both lanes round alike.
    value = (threadIdx.x & offset) == 0 ? merge(value, other) : merge(other, value);
  }
  return value;
}

__device__ Softmax block_merge(Softmax value, Softmax* scratch) {
  const unsigned lane = threadIdx.x % kWarp;
  value = warp_merge(value);
  if (lane == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  return warp_merge(scratch[lane]);
}

template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(T* logits, float* losses, const std::int32_t* targets, int vocabulary,
                         int width, float gradient_scale) {
  __shared__ Softmax scratch[kThreads / kWarp];
  T* row = logits + std::int64_t{blockIdx.x} * width;
  const int target = targets[blockIdx.x];
  const int begin = static_cast<int>(threadIdx.x) * W;

  if (target < 0) {  // not counted
    for (int col = begin; col < width; col += kThreads * W) store<W>(row + col, zero_pack<T, W>());
    if (threadIdx.x == 0) losses[blockIdx.x] = 0.0F;
    return;
  }
  Softmax mine = {-INFINITY, 0.0F};
  for (int col = begin; col < vocabulary; col += kThreads * W) {
    const Pack<T, W> values = load<W>(row + col);
    float largest = mine.largest;
#pragma unroll
    for (int i = 0; i < W; ++i) {
      if (col + i < vocabulary) largest = fmaxf(largest, values[i]);
    }
    mine.sum *= __expf(mine.largest - largest);
    mine.largest = largest;
#pragma unroll
    for (int i = 0; i < W; ++i) {
      if (col + i < vocabulary) mine.sum += __expf(values[i] - largest);
    }
  }
  const Softmax all = block_merge(mine, scratch);
  if (threadIdx.x == 0) {
    losses[blockIdx.x] = logf(all.sum) + all.largest - to_float(row[target]);
  }
  __syncthreads();  // the target's logit has been read

  // The end of the row was read last and is still in the cache: begin there.
  const float scale = gradient_scale / all.sum;
  const int rounds = (width + kThreads * W - 1) / (kThreads * W);
  for (int round = rounds - 1; round >= 0; --round) {
    const int col = begin + round * kThreads * W;
    if (col >= width) continue;
    Pack<T, W> values = load<W>(row + col);
#pragma unroll
    for (int i = 0; i < W; ++i) {
      float gradient = __expf(values[i] - all.largest) * scale;
      if (col + i == target) gradient -= gradient_scale;
      values.set(i, col + i < vocabulary ? gradient : 0.0F);
    }
    store<W>(row + col, values);
  }
}

}  // namespace

void cross_entropy(const Launch& launch, const CrossEntropy& o) {
  for_dtype(o.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        o.logits.width(),
        [&](auto width) {
          cross_entropy_kernel<T, decltype(width)::value>
              <<<static_cast<unsigned>(o.logits.rows()), kThreads, 0, launch.stream>>>(
                  data<T>(o.logits), data<float>(o.losses), data<std::int32_t>(o.targets),
                  static_cast<int>(o.vocabulary), static_cast<int>(o.logits.width()),
                  o.gradient_scale);
        },
        o.logits);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
