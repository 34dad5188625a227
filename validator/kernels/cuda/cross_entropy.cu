// One block a row. The row is read twice, the second time mostly from the L2 cache, and overwritten
// by its gradient; the logits are the only large tensor of the loss.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kBatch = 4;  // accesses of a thread that are under way at once
constexpr float kLog2E = 1.4426950408889634F;

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
  return warp_merge(lane < kThreads / kWarp ? scratch[lane] : Softmax{-INFINITY, 0.0F});
}

template <int W, class T>
__device__ void include(Softmax& softmax, const Pack<T, W>& values) {
  float largest = softmax.largest;
#pragma unroll
  for (int i = 0; i < W; ++i) largest = fmaxf(largest, values[i]);
  const float base = largest * kLog2E;
  float sum = softmax.sum * fast_exp2(softmax.largest * kLog2E - base);
#pragma unroll
  for (int i = 0; i < W; ++i) sum += fast_exp2(values[i] * kLog2E - base);
  softmax = {largest, sum};
}

/// Calls body(index, pack) for this thread's share of the row's packs, a batch of loads at a time;
/// from the end to the beginning if `backwards`.
template <int W, bool kBackwards, class T, class Body>
__device__ void for_packs(const T* row, int packs, Body&& body) {
  constexpr int kStride = kThreads * kBatch;
  const int batches = (packs + kStride - 1) / kStride;
  for (int i = 0; i < batches; ++i) {
    const int first = (kBackwards ? batches - 1 - i : i) * kStride + static_cast<int>(threadIdx.x);
    Pack<T, W> values[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int index = first + b * kThreads;
      if (index < packs) values[b] = load<W>(row + index * W);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int index = first + b * kThreads;
      if (index < packs) body(index, values[b]);
    }
  }
}

template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(T* logits, float* losses, const std::int32_t* targets, int vocabulary,
                         int width, float gradient_scale) {
  __shared__ Softmax scratch[kThreads / kWarp];
  T* row = logits + std::int64_t{blockIdx.x} * width;
  const int target = targets[blockIdx.x];
  const int thread = static_cast<int>(threadIdx.x);
  const int packs = vocabulary / W;  // whole ones; then a few single logits, then padding

  if (target < 0) {  // not counted
    for (int col = thread; col < width; col += kThreads) row[col] = from_float<T>(0.0F);
    if (thread == 0) losses[blockIdx.x] = 0.0F;
    return;
  }
  Softmax mine = {-INFINITY, 0.0F};
  for_packs<W, false>(row, packs, [&](int, const Pack<T, W>& values) { include(mine, values); });
  for (int col = packs * W + thread; col < vocabulary; col += kThreads) {
    include(mine, load<1>(row + col));
  }
  const Softmax all = block_merge(mine, scratch);
  if (thread == 0) losses[blockIdx.x] = logf(all.sum) + all.largest - to_float(row[target]);
  __syncthreads();  // the target's logit has been read

  const float base = all.largest * kLog2E;
  const float scale = gradient_scale / all.sum;
  // The end of the row was read last and is still in the cache: begin there.
  for_packs<W, true>(row, packs, [&](int index, Pack<T, W>& values) {
    float gradients[W];
#pragma unroll
    for (int i = 0; i < W; ++i) gradients[i] = fast_exp2(values[i] * kLog2E - base) * scale;
    if (index == target / W) {
#pragma unroll
      for (int i = 0; i < W; ++i) gradients[i] -= i == target % W ? gradient_scale : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < W; ++i) values.set(i, gradients[i]);
    store<W>(row + index * W, values);
  });
  for (int col = packs * W + thread; col < width; col += kThreads) {
    float gradient = 0.0F;
    if (col < vocabulary) {
      gradient = fast_exp2(to_float(row[col]) * kLog2E - base) * scale;
      if (col == target) gradient -= gradient_scale;
    }
    row[col] = from_float<T>(gradient);
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
