// Weights of 4 bits become elements that products can read: 8 codes, one access, to 8 elements.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kCodes = 8;  // a thread's at a time; a block of elements is a multiple

struct Values {
  float of[kNf4Values.size()];
};

struct Nf4Args {
  Values values;
  const std::uint8_t* codes;
  const float* scales;       // or
  const std::int8_t* small;  // with
  const float* outer;
  std::int64_t count;
};

__device__ inline float scale_of(const Nf4Args& a, std::int64_t block) {
  if (a.outer == nullptr) return a.scales[block];
  return a.outer[0] + a.outer[1 + block / kNf4ScaleBlock] * static_cast<float>(a.small[block]);
}

template <class T>
__global__ void widen_kernel(Nf4Args a, T* to) {
  __shared__ float values[sizeof(Values) / sizeof(float)];
  if (threadIdx.x < sizeof(Values) / sizeof(float)) values[threadIdx.x] = a.values.of[threadIdx.x];
  __syncthreads();
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads * kCodes;
  std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCodes;
  for (; first < a.count; first += step) {
    const float scale = scale_of(a, first / kNf4Block);
    if (first + kCodes > a.count) {
      for (std::int64_t i = first; i < a.count; ++i) {
        const unsigned both = a.codes[i / 2];
        to[i] = from_float<T>(values[i % 2 == 0 ? both >> 4U : both & 15U] * scale);
      }
      return;
    }
    const auto codes = load<kCodes / 2>(a.codes + first / 2);
    Pack<T, kCodes> out;
#pragma unroll
    for (int i = 0; i < kCodes / 2; ++i) {
      const unsigned both = codes.values[i];
      out.set(2 * i, values[both >> 4U] * scale);
      out.set(2 * i + 1, values[both & 15U] * scale);
    }
    store<kCodes>(to + first, out);
  }
}

}  // namespace

void widen_nf4(const Launch& launch, const Tensor& to, const Nf4Matrix& from) {
  Nf4Args args{.values = {},
               .codes = data<std::uint8_t>(from.codes),
               .scales = data<float>(from.scales),
               .small = data<std::int8_t>(from.scales),
               .outer = from.outer.empty() ? nullptr : data<float>(from.outer),
               .count = to.numel()};
  std::copy(kNf4Values.begin(), kNf4Values.end(), args.values.of);
  for_dtype(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    widen_kernel<T>
        <<<grid_for(ceil_div(args.count, kCodes), kThreads), kThreads, 0, launch.stream>>>(
            args, data<T>(to));
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
