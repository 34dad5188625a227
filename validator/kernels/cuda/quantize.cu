// Elements to 4 bits. A thread has 8 neighbours, so that the 8 threads of a block of 64 find its
// scale among them; the scales of a byte are found again in each pass, as nothing has room for them
// in fp32.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kElements = 8;                                       // a thread's at a time
constexpr int kSharing = static_cast<int>(kNf4Block) / kElements;  // threads of a block's scale
constexpr int kBoundaries = static_cast<int>(kNf4Values.size()) - 1;
constexpr std::int64_t kTile = std::int64_t{kThreads} * kElements;
constexpr std::int64_t kGroup = kNf4Block * kNf4ScaleBlock;  // elements whose scales share one
static_assert(kThreads == kNf4ScaleBlock && kGroup % kTile == 0 && kWarp % kSharing == 0);

struct QuantizeArgs {
  float boundaries[kBoundaries];
  std::uint8_t* codes;
  float* scales;       // or
  std::int8_t* small;  // with
  float* outer;
  std::int64_t count;
};

/// This thread's elements from `first` on, zeros beyond the last; returns the largest magnitude of
/// their block. Called by whole warps.
template <class T>
__device__ inline float load_block(const T* from, std::int64_t first, std::int64_t count,
                                   float (&x)[kElements]) {
  if (first + kElements <= count) {
    const auto pack = load<kElements>(from + first);
#pragma unroll
    for (int i = 0; i < kElements; ++i) x[i] = pack[i];
  } else {
#pragma unroll
    for (int i = 0; i < kElements; ++i) x[i] = first + i < count ? to_float(from[first + i]) : 0.0F;
  }
  float most = 0;
#pragma unroll
  for (int i = 0; i < kElements; ++i) most = fmaxf(most, fabsf(x[i]));
#pragma unroll
  for (int offset = kSharing / 2; offset > 0; offset /= 2)
    most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, offset));
  return most;
}

template <class T>
__global__ void codes_kernel(QuantizeArgs a, const T* from) {
  for (std::int64_t tile = blockIdx.x * kTile; tile < a.count; tile += gridDim.x * kTile) {
    const std::int64_t first = tile + threadIdx.x * kElements;
    float x[kElements];
    const float most = load_block(from, first, a.count, x);
    if (first >= a.count) continue;
    if (a.outer == nullptr && threadIdx.x % kSharing == 0) a.scales[first / kNf4Block] = most;
    const float scale = most > 0 ? most : 1;
    Pack<std::uint8_t, kElements / 2> out;
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const float scaled = x[i] / scale;
      unsigned code = 0;
#pragma unroll
      for (int b = 0; b < kBoundaries; ++b) code += scaled > a.boundaries[b] ? 1U : 0U;
      if (first + i >= a.count) code = 0;
      out.values[i / 2] =
          static_cast<std::uint8_t>(i % 2 == 0 ? code << 4U : out.values[i / 2] | code);
    }
    if (first + kElements <= a.count) {
      store(a.codes + first / 2, out);
    } else {
      for (int i = 0; first + i < a.count; i += 2) a.codes[(first + i) / 2] = out.values[i / 2];
    }
  }
}

/// The scales of this thread block's group, of which it has `kNf4ScaleBlock` or fewer.
template <class T>
__device__ inline std::int64_t load_scales(const T* from, std::int64_t count,
                                           float (&scales)[kNf4ScaleBlock]) {
  const std::int64_t begin = blockIdx.x * kGroup;
  for (std::int64_t tile = 0; tile < kGroup; tile += kTile) {
    const std::int64_t here = tile + threadIdx.x * kElements;
    float x[kElements];
    const float most = load_block(from, begin + here, count, x);
    if (threadIdx.x % kSharing == 0) scales[here / kNf4Block] = most;
  }
  __syncthreads();
  return min(kNf4ScaleBlock, ceil_div(count - begin, kNf4Block));
}

/// Sums of scales where the groups' own will be; then their mean.
template <class T>
__global__ void sum_scales_kernel(QuantizeArgs a, const T* from) {
  __shared__ float scales[kNf4ScaleBlock];
  const std::int64_t held = load_scales(from, a.count, scales);
  if (threadIdx.x > 0) return;
  double sum = 0;
  for (std::int64_t i = 0; i < held; ++i) sum += static_cast<double>(scales[i]);
  a.outer[1 + blockIdx.x] = static_cast<float>(sum);
}

__global__ void mean_kernel(float* outer, std::int64_t groups, std::int64_t scales) {
  double sum = 0;
  for (std::int64_t g = 0; g < groups; ++g) sum += static_cast<double>(outer[1 + g]);
  outer[0] = static_cast<float>(sum / static_cast<double>(scales));
}

struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <class T>
__global__ void narrow_scales_kernel(QuantizeArgs a, const T* from) {
  __shared__ float scales[kNf4ScaleBlock];
  __shared__ float scratch[kThreads / kWarp];
  const std::int64_t held = load_scales(from, a.count, scales);
  const bool has = threadIdx.x < held;
  const float apart = has ? scales[threadIdx.x] - a.outer[0] : 0.0F;
  const float most = block_reduce(fabsf(apart), Largest{}, 0.0F, scratch);
  if (threadIdx.x == 0) a.outer[1 + blockIdx.x] = most / kNf4ScaleSteps;
  if (has)
    a.small[blockIdx.x * kNf4ScaleBlock + threadIdx.x] =
        most > 0 ? static_cast<std::int8_t>(lroundf(apart / most * kNf4ScaleSteps))
                 : std::int8_t{0};
}

}  // namespace

void quantize_nf4(const Launch& launch, const Nf4Matrix& to, const Tensor& from) {
  QuantizeArgs args{.boundaries = {},
                    .codes = data<std::uint8_t>(to.codes),
                    .scales = data<float>(to.scales),
                    .small = data<std::int8_t>(to.scales),
                    .outer = to.outer.empty() ? nullptr : data<float>(to.outer),
                    .count = from.numel()};
  for (int b = 0; b < kBoundaries; ++b)
    args.boundaries[b] = nf4_boundary(static_cast<std::size_t>(b));
  const std::int64_t groups = ceil_div(args.count, kGroup);
  for_dtype(from.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* values = data<T>(from);
    codes_kernel<<<grid_for(ceil_div(args.count, kElements), kThreads), kThreads, 0,
                   launch.stream>>>(args, values);
    if (args.outer == nullptr) return;
    const auto grid = static_cast<unsigned>(groups);
    sum_scales_kernel<<<grid, kThreads, 0, launch.stream>>>(args, values);
    mean_kernel<<<1, 1, 0, launch.stream>>>(args.outer, groups, ceil_div(args.count, kNf4Block));
    narrow_scales_kernel<<<grid, kThreads, 0, launch.stream>>>(args, values);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
