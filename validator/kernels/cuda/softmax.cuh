// The softmax of a row that one block reads, a batch of wide accesses at a time.
#pragma once

#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda::softmax {

constexpr int kThreads = 512;
constexpr int kBatch = 4;  // accesses of a thread that are under way at once
constexpr float kLog2E = 1.4426950408889634F;

/// The largest logit seen, and the sum of exp(logit - largest).
struct Softmax {
  float largest;
  float sum;
};

__device__ inline Softmax merge(Softmax a, Softmax b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, 0.0F};
  return {largest, a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

__device__ inline Softmax warp_merge(Softmax value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Softmax other = {__shfl_xor_sync(0xffffffffU, value.largest, offset),
                           __shfl_xor_sync(0xffffffffU, value.sum, offset)};
    // The lower lane's value always comes first, so that both lanes round alike.
    value = (threadIdx.x & offset) == 0 ? merge(value, other) : merge(other, value);
  }
  return value;
}

__device__ inline Softmax block_merge(Softmax value, Softmax* scratch) {
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

/// Of the first `columns` of the block's row, known to every thread. `scratch`: one a warp.
template <int W, class T>
__device__ Softmax of_row(const T* row, int columns, Softmax* scratch) {
  const int packs = columns / W;
  Softmax mine = {-INFINITY, 0.0F};
  for_packs<W, false>(row, packs, [&](int, const Pack<T, W>& values) { include(mine, values); });
  for (int col = packs * W + static_cast<int>(threadIdx.x); col < columns; col += kThreads) {
    include(mine, load<1>(row + col));
  }
  return block_merge(mine, scratch);
}

/// Writes the gradient of the loss over the block's row of logits: scale · softmax, less the scale
/// at column `target`, which need not be among them, and 0 in the columns of padding.
template <int W, class T>
__device__ void write_gradient(T* row, int columns, int width, Softmax all, int target,
                               float gradient_scale) {
  const int packs = columns / W;  // whole ones; then a few single logits, then padding
  const float base = all.largest * kLog2E;
  const float scale = gradient_scale / all.sum;
  // The end of the row was read last and is still in the cache: begin there.
  for_packs<W, true>(row, packs, [&](int index, Pack<T, W>& values) {
    float gradients[W];
#pragma unroll
    for (int i = 0; i < W; ++i) gradients[i] = fast_exp2(values[i] * kLog2E - base) * scale;
    if (target >= 0 && index == target / W) {
#pragma unroll
      for (int i = 0; i < W; ++i) gradients[i] -= i == target % W ? gradient_scale : 0.0F;
    }
#pragma unroll
    for (int i = 0; i < W; ++i) values.set(i, gradients[i]);
    store<W>(row + index * W, values);
  });
  for (int col = packs * W + static_cast<int>(threadIdx.x); col < width; col += kThreads) {
    float gradient = 0.0F;
    if (col < columns) {
      gradient = fast_exp2(to_float(row[col]) * kLog2E - base) * scale;
      if (col == target) gradient -= gradient_scale;
    }
    row[col] = from_float<T>(gradient);
  }
}

}  // namespace shardplan::validator::cuda::softmax
