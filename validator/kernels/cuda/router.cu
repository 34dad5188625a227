// The router of a layer of experts: a warp a row, whose lanes have every 32nd expert each. What all
// rows add to the balance is summed by warps of a fixed number, then by one block in their order.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kWarps = 8;  // rows of a block
constexpr int kThreads = kWarps * kWarp;
constexpr int kTallyBlocks = 132;  // a constant, so that sums come out the same on every GPU
constexpr int kMostExperts = 1024;

struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

__device__ inline int lane_expert(int i) {
  return static_cast<int>(threadIdx.x) % kWarp + i * kWarp;
}

/// The row of this warp, of `rows` in all; grid-stride.
__device__ inline std::int64_t first_row() {
  return std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
}

/// This lane's logits of a row; −∞ beyond the last expert.
template <class T, int P>
__device__ void read_logits(const T* row, int experts, float (&logits)[P]) {
#pragma unroll
  for (int i = 0; i < P; ++i) {
    const int e = lane_expert(i);
    logits[i] = e < experts ? to_float(row[e]) : -INFINITY;
  }
}

/// Logits become probabilities.
template <int P>
__device__ void softmax_row(float (&x)[P]) {
  float largest = -INFINITY;
#pragma unroll
  for (int i = 0; i < P; ++i) largest = fmaxf(largest, x[i]);
  largest = warp_reduce(largest, Largest{});
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < P; ++i) {
    x[i] = expf(x[i] - largest);
    sum += x[i];
  }
  sum = warp_reduce(sum, Sum{});
#pragma unroll
  for (int i = 0; i < P; ++i) x[i] /= sum;
}

/// The expert of the largest logit in the warp, of equal ones the first; no more when it is taken.
/// Of logits that are no numbers the first, so that what follows stays within its tensors.
template <int P>
__device__ int take_largest(float (&logits)[P]) {
  float best = -INFINITY;
  int expert = kMostExperts;
#pragma unroll
  for (int i = 0; i < P; ++i) {
    if (logits[i] > best) {
      best = logits[i];
      expert = lane_expert(i);
    }
  }
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffU, best, offset);
    const int theirs = __shfl_xor_sync(0xffffffffU, expert, offset);
    if (other > best || (other == best && theirs < expert)) {
      best = other;
      expert = theirs;
    }
  }
#pragma unroll
  for (int i = 0; i < P; ++i) {
    if (lane_expert(i) == expert) logits[i] = -INFINITY;
  }
  return expert < kMostExperts ? expert : 0;
}

/// The sum of what this warp's lanes have at `expert`: its value.
template <int P>
__device__ float value_at(const float (&x)[P], int expert) {
  float mine = 0.0F;
#pragma unroll
  for (int i = 0; i < P; ++i) {
    if (lane_expert(i) == expert) mine = x[i];
  }
  return __shfl_sync(0xffffffffU, mine, expert % kWarp);
}

template <class T>
struct RouteArgs {
  const T* logits;
  float* weights;
  std::int32_t* chosen;
  std::int64_t rows;
  int experts;
  int per_token;
  bool renormalise;
  bool evenly;
};

template <class T, int P>
__global__ void __launch_bounds__(kThreads) route_kernel(RouteArgs<T> a) {
  const std::int64_t row = first_row();
  if (row >= a.rows) return;
  float p[P], left[P];
  read_logits(a.logits + row * a.experts, a.experts, p);
#pragma unroll
  for (int i = 0; i < P; ++i) left[i] = p[i];
  softmax_row(p);
  float sum = 0.0F;
  float* weights = a.weights + row * a.per_token;
  for (int j = 0; j < a.per_token; ++j) {
    const int expert =
        a.evenly ? static_cast<int>((row * a.per_token + j) % a.experts) : take_largest(left);
    const float weight = value_at(p, expert);
    sum += weight;
    if (threadIdx.x % kWarp != 0) continue;
    a.chosen[row * a.per_token + j] = expert;
    weights[j] = weight;
  }
  if (!a.renormalise || threadIdx.x % kWarp != 0) return;
  for (int j = 0; j < a.per_token; ++j) weights[j] /= sum;
}

/// partials: [warps of the grid, 2, experts].
template <class T, int P>
__global__ void __launch_bounds__(kThreads) tally_kernel(RouteArgs<T> a, float* partials) {
  float assigned[P] = {}, probability[P] = {};
  for (std::int64_t row = first_row(); row < a.rows; row += std::int64_t{kTallyBlocks} * kWarps) {
    float p[P];
    read_logits(a.logits + row * a.experts, a.experts, p);
    softmax_row(p);
#pragma unroll
    for (int i = 0; i < P; ++i) probability[i] += p[i];
    for (int j = 0; j < a.per_token; ++j) {
      const int expert = a.chosen[row * a.per_token + j];
#pragma unroll
      for (int i = 0; i < P; ++i) {
        if (lane_expert(i) == expert) assigned[i] += 1.0F;
      }
    }
  }
  float* mine = partials + first_row() * 2 * a.experts;
#pragma unroll
  for (int i = 0; i < P; ++i) {
    const int e = lane_expert(i);
    if (e >= a.experts) continue;
    mine[e] = assigned[i];
    mine[a.experts + e] = probability[i];
  }
}

__global__ void add_tally_kernel(float* balance, const float* partials, int numbers) {
  const int n = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (n >= numbers) return;
  float sum = 0.0F;
  for (int w = 0; w < kTallyBlocks * kWarps; ++w) sum += partials[std::int64_t{w} * numbers + n];
  balance[n] += sum;
}

template <class T>
struct RouteBackArgs {
  T* logits;
  const float* dweights;
  const std::int32_t* chosen;
  const float* balance;
  float balance_scale;
  std::int64_t rows;
  int experts;
  int per_token;
  bool renormalise;
};

template <class T, int P>
__global__ void __launch_bounds__(kThreads) route_backward_kernel(RouteBackArgs<T> a) {
  const std::int64_t row = first_row();
  if (row >= a.rows) return;
  T* logits = a.logits + row * a.experts;
  const std::int32_t* chosen = a.chosen + row * a.per_token;
  const float* dweights = a.dweights + row * a.per_token;
  float p[P], dp[P];
  read_logits(logits, a.experts, p);
  softmax_row(p);
  float sum = 1.0F, shared = 0.0F;
  if (a.renormalise) {
    sum = 0.0F;
    for (int j = 0; j < a.per_token; ++j) {
      const float weight = value_at(p, chosen[j]);
      sum += weight;
      shared += dweights[j] * weight;
    }
    shared /= sum;
  }
#pragma unroll
  for (int i = 0; i < P; ++i) {
    const int e = lane_expert(i);
    dp[i] = a.balance != nullptr && e < a.experts ? a.balance_scale * a.balance[e] : 0.0F;
  }
  for (int j = 0; j < a.per_token; ++j) {
    const float slope = (dweights[j] - shared) / sum;
#pragma unroll
    for (int i = 0; i < P; ++i) {
      if (lane_expert(i) == chosen[j]) dp[i] += slope;
    }
  }
  float mean = 0.0F;
#pragma unroll
  for (int i = 0; i < P; ++i) mean += p[i] * dp[i];
  mean = warp_reduce(mean, Sum{});
#pragma unroll
  for (int i = 0; i < P; ++i) {
    const int e = lane_expert(i);
    if (e < a.experts) logits[e] = from_float<T>(p[i] * (dp[i] - mean));
  }
}

/// Calls body with Width<experts of a lane>.
template <class Body>
void for_experts(std::int64_t experts, Body&& body) {
  if (experts <= 32) return body(Width<1>{});
  if (experts <= 64) return body(Width<2>{});
  if (experts <= 128) return body(Width<4>{});
  if (experts <= 256) return body(Width<8>{});
  if (experts <= kMostExperts) return body(Width<32>{});
  throw DeviceError("a router's kernel takes at most 1024 experts");
}

__global__ void balance_loss_kernel(float* loss, const float* balance, int experts, float scale) {
  __shared__ float scratch[kWarps];
  float sum = 0.0F;
  for (int e = static_cast<int>(threadIdx.x); e < experts; e += kThreads)
    sum += balance[e] * balance[experts + e];
  sum = block_reduce(sum, Sum{}, 0.0F, scratch);
  if (threadIdx.x == 0) *loss += scale * sum;
}

}  // namespace

void route_forward(const Launch& launch, const RouteForward& o) {
  const auto blocks = static_cast<unsigned>(ceil_div(o.logits.rows(), kWarps));
  const auto experts = static_cast<int>(o.logits.width());
  for_dtype(o.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    const RouteArgs<T> args{.logits = data<T>(o.logits),
                            .weights = data<float>(o.weights),
                            .chosen = data<std::int32_t>(o.experts),
                            .rows = o.logits.rows(),
                            .experts = experts,
                            .per_token = static_cast<int>(o.weights.width()),
                            .renormalise = o.renormalise,
                            .evenly = o.evenly};
    for_experts(experts, [&](auto each) {
      constexpr int kEach = decltype(each)::value;
      route_kernel<T, kEach><<<blocks, kThreads, 0, launch.stream>>>(args);
      if (o.balance.empty()) return;
      float* partials = launch.scratch<float>(std::int64_t{kTallyBlocks} * kWarps * 2 * experts);
      tally_kernel<T, kEach><<<kTallyBlocks, kThreads, 0, launch.stream>>>(args, partials);
      add_tally_kernel<<<static_cast<unsigned>(ceil_div(2 * experts, kThreads)), kThreads, 0,
                         launch.stream>>>(data<float>(o.balance), partials, 2 * experts);
    });
  });
  check_launch();
}

void route_backward(const Launch& launch, const RouteBackward& o) {
  const auto blocks = static_cast<unsigned>(ceil_div(o.logits.rows(), kWarps));
  for_dtype(o.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    const RouteBackArgs<T> args{.logits = data<T>(o.logits),
                                .dweights = data<float>(o.dweights),
                                .chosen = data<std::int32_t>(o.experts),
                                .balance = o.balance.empty() ? nullptr : data<float>(o.balance),
                                .balance_scale = o.balance_scale,
                                .rows = o.logits.rows(),
                                .experts = static_cast<int>(o.logits.width()),
                                .per_token = static_cast<int>(o.dweights.width()),
                                .renormalise = o.renormalise};
    for_experts(o.logits.width(), [&](auto each) {
      route_backward_kernel<T, decltype(each)::value><<<blocks, kThreads, 0, launch.stream>>>(args);
    });
  });
  check_launch();
}

void balance_loss(const Launch& launch, const Tensor& loss, const Tensor& balance, float scale) {
  balance_loss_kernel<<<1, kThreads, 0, launch.stream>>>(data<float>(loss), data<float>(balance),
                                                         static_cast<int>(balance.width()), scale);
  check_launch();
}

}  // namespace shardplan::validator::cuda
