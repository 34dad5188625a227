// AdamW over a flat range. Every element is read and written once; the clipping factor is worked
// out from the gradients' norm on the device, so that no step waits for the host.
#include <algorithm>
#include <cmath>

#include "device/random.h"
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPacks = 2;            // accesses of a thread to each tensor
constexpr float kNormFloor = 1e-6F;  // as torch.nn.utils.clip_grad_norm_

template <class P, class S>
struct AdamWArgs {
  P* parameter;
  float* master;
  const P* gradient;
  S* first;
  S* second;
  const float* squared_norm;
  std::int64_t count;
  float inverse_scale;
  float largest_norm;
  float learning_rate;
  float beta1;
  float beta2;
  float epsilon;
  float decay;                // 1 - learning_rate * weight_decay
  float step_size;            // learning_rate / (1 - beta1^step)
  float inverse_root_second;  // 1 / sqrt(1 - beta2^step)
  std::uint64_t random;       // this step's stream of random bits
  std::uint64_t first_element;
};

/// Rounds to nearest, or to bf16 by the random bits. `kFinite`: x is known to be.
template <class T, bool kFinite>
__device__ T round_to(float x, std::uint64_t bits) {
  if constexpr (!std::is_same_v<T, __nv_bfloat16>) {
    return from_float<T>(x);
  } else if constexpr (kFinite) {
    const std::uint32_t rounded = __float_as_uint(x) + static_cast<std::uint16_t>(bits);
    return __ushort_as_bfloat16(static_cast<std::uint16_t>(rounded >> 16U));
  } else {
    return __ushort_as_bfloat16(
        stochastic_bf16(__float_as_uint(x), static_cast<std::uint16_t>(bits)));
  }
}

template <class P, class S, int W, bool kMaster>
__global__ void adamw_kernel(AdamWArgs<P, S> a) {
  const float squared_norm = *a.squared_norm;
  if (!isfinite(squared_norm)) return;  // an overflow: the step is skipped
  float scale = a.inverse_scale;
  if (a.largest_norm > 0.0F) {
    const float norm = a.inverse_scale * sqrtf(squared_norm);
    scale *= fminf(1.0F, a.largest_norm / (norm + kNormFloor));
  }
  constexpr bool kRandom =
      std::is_same_v<S, __nv_bfloat16> || (!kMaster && std::is_same_v<P, __nv_bfloat16>);
  const std::int64_t begin = std::int64_t{blockIdx.x} * kThreads * kPacks * W + threadIdx.x * W;
#pragma unroll
  for (int pack = 0; pack < kPacks; ++pack) {
    const std::int64_t at = begin + std::int64_t{pack} * kThreads * W;
    if (at >= a.count) return;
    const Pack<P, W> gradient = load<W>(a.gradient + at);
    Pack<S, W> first = load<W>(a.first + at);
    Pack<S, W> second = load<W>(a.second + at);
    Pack<P, W> parameter;
    Pack<float, W> master;
    if constexpr (kMaster) {
      master = load<W>(a.master + at);
    } else {
      parameter = load<W>(a.parameter + at);
    }
    float m[W], v[W], after[W];
    float sum = 0.0F;
#pragma unroll
    for (int e = 0; e < W; ++e) {
      const float g = gradient[e] * scale;
      m[e] = a.beta1 * first[e] + (1.0F - a.beta1) * g;
      v[e] = a.beta2 * second[e] + (1.0F - a.beta2) * g * g;
      const float denominator = fast_sqrt(v[e]) * a.inverse_root_second + a.epsilon;
      const float before = kMaster ? master[e] : parameter[e];
      after[e] = before * a.decay - __fdividef(a.step_size * m[e], denominator);
      sum += m[e] + v[e] + after[e];
    }
    const auto round = [&]<bool kFinite>() {
#pragma unroll
      for (int e = 0; e < W; ++e) {
        std::uint64_t bits = 0;
        if constexpr (kRandom)
          bits = mixed(a.random ^ (a.first_element + static_cast<std::uint64_t>(at + e)));
        first.values[e] = round_to<S, kFinite>(m[e], bits >> 16U);
        second.values[e] = round_to<S, kFinite>(v[e], bits >> 32U);
        if constexpr (kMaster) {
          master.values[e] = after[e];
          parameter.set(e, after[e]);
        } else {
          parameter.values[e] = round_to<P, kFinite>(after[e], bits);
        }
      }
    };
    // A sum is finite only if all its terms are: one look instead of one at each.
    isfinite(sum) ? round.template operator()<true>() : round.template operator()<false>();
    store<W>(a.first + at, first);
    store<W>(a.second + at, second);
    store<W>(a.parameter + at, parameter);
    if constexpr (kMaster) store<W>(a.master + at, master);
  }
}

template <class P, class S, int W, bool kMaster>
void run(const Launch& launch, const AdamW& o) {
  const double correction1 = 1.0 - std::pow(double{o.beta1}, static_cast<double>(o.step));
  const double correction2 = 1.0 - std::pow(double{o.beta2}, static_cast<double>(o.step));
  const AdamWArgs<P, S> args{
      .parameter = data<P>(o.parameter),
      .master = data<float>(o.master),
      .gradient = data<P>(o.gradient),
      .first = data<S>(o.first_moment),
      .second = data<S>(o.second_moment),
      .squared_norm = data<float>(o.clipping.squared_norm),
      .count = o.parameter.numel(),
      .inverse_scale = o.clipping.inverse_scale,
      .largest_norm = o.clipping.largest_norm,
      .learning_rate = o.learning_rate,
      .beta1 = o.beta1,
      .beta2 = o.beta2,
      .epsilon = o.epsilon,
      .decay = static_cast<float>(1.0 - double{o.learning_rate} * double{o.weight_decay}),
      .step_size = static_cast<float>(o.learning_rate / correction1),
      .inverse_root_second = static_cast<float>(1.0 / std::sqrt(correction2)),
      .random = random_stream(o.seed, static_cast<std::uint64_t>(o.step)),
      .first_element = static_cast<std::uint64_t>(o.first_element)};
  const std::int64_t blocks = ceil_div(args.count, std::int64_t{kThreads} * kPacks * W);
  adamw_kernel<P, S, W, kMaster>
      <<<static_cast<unsigned>(blocks), kThreads, 0, launch.stream>>>(args);
}

}  // namespace

void adamw(const Launch& launch, const AdamW& o) {
  for_dtype(o.parameter.dtype, [&](auto parameter_zero) {
    using P = decltype(parameter_zero);
    const auto with_states = [&](auto state_zero) {
      using S = decltype(state_zero);
      constexpr int kBest = std::min(kWidth<P>, kWidth<S>);
      const bool aligned = o.parameter.numel() % kBest == 0;
      for_width<P>(
          aligned ? kWidth<P> : 1,
          [&](auto width) {
            constexpr int kW = decltype(width)::value == 1 ? 1 : kBest;
            o.master.empty() ? run<P, S, kW, false>(launch, o) : run<P, S, kW, true>(launch, o);
          },
          o.parameter, o.master, o.gradient, o.first_moment, o.second_moment);
    };
    o.first_moment.dtype == DType::bf16 ? with_states(__nv_bfloat16{}) : with_states(float{});
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
