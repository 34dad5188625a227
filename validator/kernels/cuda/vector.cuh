// What all kernels share: elements moved 128 bits at a time, arithmetic in float, reductions over
// warps and blocks in a fixed order, and element types as template arguments.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/cuda/launch.h"

namespace shardplan::validator::cuda {

constexpr int kWarp = 32;

/// Blocks that fill a GPU of 132 multiprocessors several times over. A constant, so that sums are
/// split in the same way, and come out the same, on every GPU.
constexpr int kManyBlocks = 8 * 132;

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ inline float to_float(__half x) {
  return __half2float(x);
}

template <class T>
__device__ inline T from_float(float x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return x;
  } else if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else {
    return __float2bfloat16_rn(x);
  }
}

/// N neighbours in memory, moved by as few instructions as their size allows.
template <class T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) Pack {
  T values[N];

  __device__ float operator[](int i) const { return to_float(values[i]); }
  __device__ void set(int i, float x) { values[i] = from_float<T>(x); }
};

/// Elements of a 128-bit access.
template <class T>
constexpr int kWidth = static_cast<int>(16 / sizeof(T));

/// 2^x and √x in one instruction of the special-function unit, good to about 2^-22.
__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float fast_sqrt(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <int N, class T>
__device__ inline Pack<T, N> load(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}

template <int N, class T>
__device__ inline void store(T* to, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

template <class T, int N>
__device__ inline Pack<T, N> zero_pack() {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.set(i, 0.0F);
  return pack;
}

struct Sum {
  template <class V>
  __device__ V operator()(V a, V b) const {
    return a + b;
  }
};

template <class Op, class V>
__device__ inline V warp_reduce(V value, Op op) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = op(value, __shfl_xor_sync(0xffffffffU, value, offset));
  }
  return value;
}

/// The reduction over a one-dimensional block of whole warps, known to every thread. `scratch`
/// holds one value a warp and may be reused after the call.
template <class Op, class V>
__device__ inline V block_reduce(V value, Op op, V identity, V* scratch) {
  const unsigned lane = threadIdx.x % kWarp;
  value = warp_reduce(value, op);
  if (lane == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = warp_reduce(lane < blockDim.x / kWarp ? scratch[lane] : identity, op);
  __syncthreads();
  return value;
}

/// Calls body with a value of the element type: body(float{}), body(__nv_bfloat16{}), ...
template <class Body>
void for_dtype(DType type, Body&& body) {
  switch (type) {
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(__nv_bfloat16{});
    case DType::f16:
      return body(__half{});
    default:
      throw DeviceError("kernels work on fp32, bf16 and fp16 alone");
  }
}

template <int N>
struct Width {
  static constexpr int value = N;
};

/// Calls body with Width<16 bytes> if every tensor, in rows of `row` elements, can be read 128 bits
/// at a time; with Width<1> otherwise.
template <class T, class Body, class... Tensors>
void for_width(std::int64_t row, Body&& body, const Tensors&... tensors) {
  if (row % kWidth<T> == 0 && ((tensors.address % 16 == 0) && ...)) {
    body(Width<kWidth<T>>{});
  } else {
    body(Width<1>{});
  }
}

/// Blocks of a grid-stride kernel.
inline unsigned grid_for(std::int64_t items, int threads) {
  const std::int64_t wanted = ceil_div(items, threads);
  return static_cast<unsigned>(wanted < kManyBlocks ? wanted : kManyBlocks);
}

template <class T>
T* data(const Tensor& x) {
  return reinterpret_cast<T*>(x.address);
}

/// A launch reports its errors nowhere else.
inline void check_launch() {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    throw DeviceError(std::string("a kernel could not be started: ") + cudaGetErrorString(error));
  }
}

}  // namespace shardplan::validator::cuda
