// Filling, converting and adding whole tensors.
#include "device/random.h"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;

/// Calls body(i) for this thread's share of [0, count).
template <class Body>
__device__ void for_each(std::int64_t count, Body&& body) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    body(i);
  }
}

template <class T>
__global__ void fill_kernel(T* x, std::int64_t count, float value) {
  for_each(count, [&](std::int64_t i) { x[i] = from_float<T>(value); });
}

/// In double, so that host and GPU round the same number and seldom differ.
template <class T>
__global__ void fill_normal_kernel(T* x, std::int64_t count, float stddev, std::uint32_t seed,
                                   std::int64_t first) {
  constexpr double kTwoPi = 6.283185307179586;
  for_each(count, [&](std::int64_t i) {
    const std::uint64_t bits =
        random_bits(seed, kNormalStream, static_cast<std::uint64_t>(first + i));
    const double u1 = unit_interval(static_cast<std::uint32_t>(bits));
    const double u2 = unit_interval(static_cast<std::uint32_t>(bits >> 32U));
    const double normal = sqrt(-2.0 * log(u1)) * cos(kTwoPi * u2);
    x[i] = from_float<T>(stddev * static_cast<float>(normal));
  });
}

template <class To, class From, int W>
__global__ void cast_kernel(To* to, const From* from, std::int64_t packs) {
  for_each(packs, [&](std::int64_t i) {
    const Pack<From, W> in = load<W>(from + i * W);
    Pack<To, W> out;
#pragma unroll
    for (int e = 0; e < W; ++e) out.set(e, in[e]);
    store<W>(to + i * W, out);
  });
}

template <class T, int W>
__global__ void add_kernel(T* to, const T* x, std::int64_t packs) {
  for_each(packs, [&](std::int64_t i) {
    Pack<T, W> sum = load<W>(to + i * W);
    const Pack<T, W> other = load<W>(x + i * W);
#pragma unroll
    for (int e = 0; e < W; ++e) sum.set(e, sum[e] + other[e]);
    store<W>(to + i * W, sum);
  });
}

}  // namespace

void fill(const Launch& launch, const Tensor& x, float value) {
  for_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    fill_kernel<<<grid_for(x.numel(), kThreads), kThreads, 0, launch.stream>>>(data<T>(x),
                                                                               x.numel(), value);
  });
  check_launch();
}

void fill_normal(const Launch& launch, const Tensor& x, float stddev, std::uint32_t seed,
                 std::int64_t first_element) {
  for_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    fill_normal_kernel<<<grid_for(x.numel(), kThreads), kThreads, 0, launch.stream>>>(
        data<T>(x), x.numel(), stddev, seed, first_element);
  });
  check_launch();
}

void cast(const Launch& launch, const Tensor& to, const Tensor& from) {
  for_dtype(to.dtype, [&](auto to_zero) {
    using To = decltype(to_zero);
    for_dtype(from.dtype, [&](auto from_zero) {
      using From = decltype(from_zero);
      for_width<From>(
          to.numel() % kWidth<To> == 0 ? from.numel() : 1,
          [&](auto width) {
            constexpr int kW = decltype(width)::value;
            const std::int64_t packs = from.numel() / kW;
            cast_kernel<To, From, kW><<<grid_for(packs, kThreads), kThreads, 0, launch.stream>>>(
                data<To>(to), data<From>(from), packs);
          },
          to, from);
    });
  });
  check_launch();
}

void add(const Launch& launch, const Tensor& to, const Tensor& x) {
  for_dtype(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        to.numel(),
        [&](auto width) {
          constexpr int kW = decltype(width)::value;
          const std::int64_t packs = to.numel() / kW;
          add_kernel<T, kW><<<grid_for(packs, kThreads), kThreads, 0, launch.stream>>>(
              data<T>(to), data<T>(x), packs);
        },
        to, x);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
