// Rows on their way to experts and back: which slot each has, and sums of what came out of slots.
// Slots are dealt out by one block an expert, which goes through all assignments in their order:
// the same rows always have the same slots.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kPlacers = 1024;  // assignments that a block looks at at once
constexpr int kThreads = 128;

struct PlaceArgs {
  const std::int32_t* experts;
  std::int32_t* places;
  std::int32_t* rows;
  std::int32_t* counts;
  std::int64_t assignments;
  std::int64_t capacity;
  std::int64_t slots;
  int per_token;
  int count;  // of experts
  int owners;
  int multiple;
};

__global__ void __launch_bounds__(kPlacers) count_kernel(PlaceArgs a) {
  __shared__ int scratch[kPlacers / kWarp];
  const int expert = static_cast<int>(blockIdx.x);
  int mine = 0;
  for (std::int64_t i = threadIdx.x; i < a.assignments; i += kPlacers)
    mine += a.experts[i] == expert ? 1 : 0;
  mine = block_reduce(mine, Sum{}, 0, scratch);
  if (threadIdx.x == 0) a.counts[expert] = mine;
}

/// Slots of an expert without a capacity.
__device__ int given_slots(const PlaceArgs& a, int expert) {
  return (a.counts[expert] + a.multiple - 1) / a.multiple * a.multiple;
}

/// The first slot of this block's expert, known to every thread.
__device__ std::int64_t first_slot(const PlaceArgs& a, int* scratch) {
  const int expert = static_cast<int>(blockIdx.x);
  if (a.capacity > 0) {
    const int local = a.count / a.owners;
    return (std::int64_t{expert % local} * a.owners + expert / local) * a.capacity;
  }
  int before = 0;
  for (int e = static_cast<int>(threadIdx.x); e < expert; e += kPlacers)
    before += given_slots(a, e);
  return block_reduce(before, Sum{}, 0, scratch);
}

__global__ void __launch_bounds__(kPlacers) place_kernel(PlaceArgs a) {
  __shared__ int scratch[kPlacers / kWarp];
  const int expert = static_cast<int>(blockIdx.x);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t first = first_slot(a, scratch);
  const std::int64_t room = a.capacity > 0 ? a.capacity : given_slots(a, expert);
  std::int64_t taken = 0;
  for (std::int64_t begin = 0; begin < a.assignments; begin += kPlacers) {
    const std::int64_t i = begin + threadIdx.x;
    const bool mine = i < a.assignments && a.experts[i] == expert;
    const unsigned all = __ballot_sync(0xffffffffU, mine);
    if (lane == 0) scratch[warp] = __popc(all);
    __syncthreads();
    std::int64_t nth = taken + __popc(all & ((1U << lane) - 1U));
    for (int w = 0; w < kPlacers / kWarp; ++w) {
      if (w < warp) nth += scratch[w];
      taken += scratch[w];
    }
    __syncthreads();
    if (!mine) continue;
    const bool fits = nth < room;
    a.places[i] = fits ? static_cast<std::int32_t>(first + nth) : -1;
    if (fits) a.rows[first + nth] = static_cast<std::int32_t>(i / a.per_token);
  }
  // Without a capacity nobody has what follows the last expert's.
  const bool last = a.capacity == 0 && expert == a.count - 1;
  const std::int64_t end = last ? a.slots - first : room;
  for (std::int64_t slot = taken + threadIdx.x; slot < end; slot += kPlacers)
    a.rows[first + slot] = -1;
}

__global__ void dropped_kernel(float* dropped, PlaceArgs a) {
  __shared__ int scratch[kPlacers / kWarp];
  int mine = 0;
  for (int e = static_cast<int>(threadIdx.x); e < a.count; e += kPlacers)
    mine += max(0, a.counts[e] - static_cast<int>(a.capacity));
  mine = block_reduce(mine, Sum{}, 0, scratch);
  if (threadIdx.x == 0) *dropped += static_cast<float>(mine);
}

template <class T>
struct CombineArgs {
  T* out;
  const T* slots;
  const std::int32_t* places;
  const float* weights;
  int per_token;
  int width;
  bool accumulate;
};

template <class T, int W>
__global__ void combine_kernel(CombineArgs<T> a) {
  const std::int64_t row = blockIdx.x;
  const std::int32_t* places = a.places + row * a.per_token;
  T* out = a.out + row * a.width;
  for (int col = static_cast<int>(threadIdx.x) * W; col < a.width; col += kThreads * W) {
    float sums[W] = {};
    if (a.accumulate) {
      const Pack<T, W> before = load<W>(out + col);
#pragma unroll
      for (int e = 0; e < W; ++e) sums[e] = before[e];
    }
    for (int j = 0; j < a.per_token; ++j) {
      const int place = places[j];
      if (place < 0) continue;
      const float weight = a.weights != nullptr ? a.weights[row * a.per_token + j] : 1.0F;
      const Pack<T, W> values = load<W>(a.slots + std::int64_t{place} * a.width + col);
#pragma unroll
      for (int e = 0; e < W; ++e) sums[e] += weight * values[e];
    }
    Pack<T, W> result;
#pragma unroll
    for (int e = 0; e < W; ++e) result.set(e, sums[e]);
    store<W>(out + col, result);
  }
}

template <class T>
struct CombineBackArgs {
  T* slots;
  float* weights;
  const std::int32_t* places;
  const T* dout;
  int per_token;
  int width;
};

template <class T, int W>
__global__ void combine_backward_kernel(CombineBackArgs<T> a) {
  __shared__ float scratch[kThreads / kWarp];
  const std::int64_t assignment = blockIdx.x;
  const int place = a.places[assignment];
  const float weight = a.weights[assignment];
  float slope = 0.0F;
  if (place >= 0) {
    T* slot = a.slots + std::int64_t{place} * a.width;
    const T* dout = a.dout + assignment / a.per_token * a.width;
    for (int col = static_cast<int>(threadIdx.x) * W; col < a.width; col += kThreads * W) {
      Pack<T, W> values = load<W>(slot + col);
      const Pack<T, W> grad = load<W>(dout + col);
#pragma unroll
      for (int e = 0; e < W; ++e) {
        slope += values[e] * grad[e];
        values.set(e, weight * grad[e]);
      }
      store<W>(slot + col, values);
    }
  }
  slope = block_reduce(slope, Sum{}, 0.0F, scratch);
  if (threadIdx.x == 0) a.weights[assignment] = slope;
}

}  // namespace

void place_rows(const Launch& launch, const PlaceRows& o) {
  const PlaceArgs args{.experts = data<std::int32_t>(o.experts),
                       .places = data<std::int32_t>(o.places),
                       .rows = data<std::int32_t>(o.rows),
                       .counts = data<std::int32_t>(o.counts),
                       .assignments = o.experts.numel(),
                       .capacity = o.capacity,
                       .slots = o.rows.numel(),
                       .per_token = static_cast<int>(o.experts.width()),
                       .count = static_cast<int>(o.counts.numel()),
                       .owners = static_cast<int>(o.owners),
                       .multiple = static_cast<int>(o.multiple)};
  const auto experts = static_cast<unsigned>(o.counts.numel());
  count_kernel<<<experts, kPlacers, 0, launch.stream>>>(args);
  place_kernel<<<experts, kPlacers, 0, launch.stream>>>(args);
  if (o.capacity > 0 && !o.dropped.empty())
    dropped_kernel<<<1, kPlacers, 0, launch.stream>>>(data<float>(o.dropped), args);
  check_launch();
}

void combine_rows(const Launch& launch, const CombineRows& o) {
  for_dtype(o.out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const CombineArgs<T> args{.out = data<T>(o.out),
                              .slots = data<T>(o.slots),
                              .places = data<std::int32_t>(o.places),
                              .weights = o.weights.empty() ? nullptr : data<float>(o.weights),
                              .per_token = static_cast<int>(o.places.width()),
                              .width = static_cast<int>(o.out.width()),
                              .accumulate = o.accumulate};
    for_width<T>(
        o.out.width(),
        [&](auto width) {
          combine_kernel<T, decltype(width)::value>
              <<<static_cast<unsigned>(o.out.rows()), kThreads, 0, launch.stream>>>(args);
        },
        o.out, o.slots);
  });
  check_launch();
}

void combine_backward(const Launch& launch, const CombineBackward& o) {
  for_dtype(o.slots.dtype, [&](auto zero) {
    using T = decltype(zero);
    const CombineBackArgs<T> args{.slots = data<T>(o.slots),
                                  .weights = data<float>(o.weights),
                                  .places = data<std::int32_t>(o.places),
                                  .dout = data<T>(o.dout),
                                  .per_token = static_cast<int>(o.weights.width()),
                                  .width = static_cast<int>(o.slots.width())};
    for_width<T>(
        o.slots.width(),
        [&](auto width) {
          combine_backward_kernel<T, decltype(width)::value>
              <<<static_cast<unsigned>(o.weights.numel()), kThreads, 0, launch.stream>>>(args);
        },
        o.slots, o.dout);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
