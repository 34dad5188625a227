// The loops themselves, for a compiler that turns them into vector instructions: included by one
// source a generation, which is compiled with that generation's flags. Nothing here may be a
// function that other sources compile too: the linker would keep one of them, of any generation.
#include <cstdint>

#include "device/random.h"
#include "kernels/host/vectors/vectors.h"

namespace shardplan::validator::host {
namespace {

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};

/// Elements whose random bits are made ahead of the loop that uses them.
constexpr std::int64_t kBlock = 256;

[[gnu::always_inline]] inline float widened(float x) {
  return x;
}
[[gnu::always_inline]] inline float widened(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16U);
}
/// In integers, because compilers do not make vectors of conversions of halves. The product moves
/// the exponent's zero, and is exact for denormal halves too.
[[gnu::always_inline]] inline float widened(F16 x) {
  const std::uint32_t magnitude = (x.bits & 0x7FFFU) << 13U;
  const float moved = __builtin_bit_cast(float, magnitude) * 0x1p112F;
  const std::uint32_t infinite = magnitude >= 0x0F800000U ? 0x7F800000U : 0U;
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, moved) | infinite |
                                       static_cast<std::uint32_t>(x.bits & 0x8000U) << 16U);
}

[[gnu::always_inline]] inline void put(float& to, float x) {
  to = x;
}
/// To nearest, ties to even; NaN stays one.
[[gnu::always_inline]] inline void put(Bf16& to, float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const std::uint32_t nan = (bits & 0x80000000U) | 0x7FC00000U;
  to.bits = static_cast<std::uint16_t>(((bits & 0x7FFFFFFFU) > 0x7F800000U ? nan : rounded) >> 16U);
}
/// The same. Adding one half lets the sum's rounding make denormal halves.
[[gnu::always_inline]] inline void put(F16& to, float x) {
  constexpr std::uint32_t kInfinity = 0x7F800000U, kTooLarge = 0x47800000U, kNormal = 0x38800000U;
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t special = magnitude > kInfinity ? 0x7E00U : 0x7C00U;
  const std::uint32_t normal =
      (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13U) & 1U)) >> 13U;
  const float sum = __builtin_bit_cast(float, magnitude) + 0.5F;
  const std::uint32_t denormal = __builtin_bit_cast(std::uint32_t, sum) - 0x3F000000U;
  const std::uint32_t finite = magnitude < kNormal ? denormal : normal;
  to.bits = static_cast<std::uint16_t>((magnitude >= kTooLarge ? special : finite) |
                                       (bits & 0x80000000U) >> 16U);
}

/// Into bf16 by the random bits, into all others to nearest. kFinite: x is no infinity and no NaN.
template <bool kFinite>
[[gnu::always_inline]] inline void put_random(float& to, float x, std::uint32_t) {
  to = x;
}
template <bool kFinite>
[[gnu::always_inline]] inline void put_random(F16& to, float x, std::uint32_t) {
  put(to, x);
}
template <bool kFinite>
[[gnu::always_inline]] inline void put_random(Bf16& to, float x, std::uint32_t random) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  to.bits = kFinite ? static_cast<std::uint16_t>((bits + random) >> 16U)
                    : stochastic_bf16(bits, static_cast<std::uint16_t>(random));
}

/// An element's 64 random bits in two words, as wide as what they are added to: the parameter's and
/// the first moment's in the lower one, the second moment's in the upper.
struct RandomBlock {
  std::uint32_t lower[kBlock], upper[kBlock];
};

[[gnu::always_inline]] inline void draw(RandomBlock& random, const AdamWRange& r, std::int64_t at,
                                        std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits =
        mixed(r.factors.random ^ (r.first_element + static_cast<std::uint64_t>(at + i)));
    random.lower[i] = static_cast<std::uint32_t>(bits);
    random.upper[i] = static_cast<std::uint32_t>(bits >> 32U);
  }
}

/// What an update makes of an element, before it is rounded.
struct Updated {
  float value, first, second;
};

template <typename P, typename S, bool kMaster>
struct Elements {
  P* __restrict parameter;
  float* __restrict master;
  const P* __restrict gradient;
  S* __restrict first;
  S* __restrict second;

  Elements(const AdamWRange& r, std::int64_t at)
      : parameter(static_cast<P*>(r.parameter) + at),
        master(kMaster ? r.master + at : nullptr),
        gradient(static_cast<const P*>(r.gradient) + at),
        first(static_cast<S*>(r.first) + at),
        second(static_cast<S*>(r.second) + at) {}

  [[gnu::always_inline]] Updated updated(const AdamWFactors& f, std::int64_t i) const {
    const float g = widened(gradient[i]) * f.gradient;
    const float m = f.beta1 * widened(first[i]) + (1 - f.beta1) * g;
    const float v = f.beta2 * widened(second[i]) + (1 - f.beta2) * g * g;
    const float denominator = __builtin_sqrtf(v) * f.inverse_root + f.epsilon;
    const float old = kMaster ? master[i] : widened(parameter[i]);
    return {old * f.decay - f.step_size * m / denominator, m, v};
  }
};

template <typename P, typename S, bool kMaster>
void update_to_nearest(const AdamWRange& r) {
  const Elements<P, S, kMaster> e(r, 0);
  const AdamWFactors f = r.factors;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const Updated u = e.updated(f, i);
    put(e.first[i], u.first);
    put(e.second[i], u.second);
    if constexpr (kMaster) e.master[i] = u.value;
    put(e.parameter[i], u.value);
  }
}

/// A block's results in fp32, which are rounded once it is known whether all are finite.
struct Results {
  float value[kBlock], first[kBlock], second[kBlock];
};

/// Whether all results are finite; false also where one is 2 or more and others fill its exponent's
/// bits, as all three are looked at in one word.
template <typename P, typename S, bool kMaster>
bool update_block(Results& to, const AdamWRange& r, std::int64_t at, std::int64_t count) {
  const Elements<P, S, kMaster> e(r, at);
  const AdamWFactors f = r.factors;
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Updated u = e.updated(f, i);
    to.value[i] = u.value;
    to.first[i] = u.first;
    to.second[i] = u.second;
    const std::uint32_t any =
        (__builtin_bit_cast(std::uint32_t, u.value) | __builtin_bit_cast(std::uint32_t, u.first) |
         __builtin_bit_cast(std::uint32_t, u.second)) &
        0x7FFFFFFFU;
    largest = largest < any ? any : largest;
  }
  return largest < 0x7F800000U;
}

template <typename P, typename S, bool kMaster, bool kFinite>
void round_block(const AdamWRange& r, const Results& from, const RandomBlock& random,
                 std::int64_t at, std::int64_t count) {
  const Elements<P, S, kMaster> e(r, at);
  for (std::int64_t i = 0; i < count; ++i) {
    put_random<kFinite>(e.first[i], from.first[i], random.lower[i] >> 16U);
    put_random<kFinite>(e.second[i], from.second[i], random.upper[i] & 0xFFFFU);
    if constexpr (kMaster) {
      e.master[i] = from.value[i];
      put(e.parameter[i], from.value[i]);
    } else {
      put_random<kFinite>(e.parameter[i], from.value[i], random.lower[i] & 0xFFFFU);
    }
  }
}

template <typename A, typename B>
constexpr bool kSame = false;
template <typename A>
constexpr bool kSame<A, A> = true;

template <typename P, typename S, bool kMaster>
void update(const AdamWRange& r) {
  constexpr bool kRandom = kSame<S, Bf16> || (!kMaster && kSame<P, Bf16>);
  if constexpr (!kRandom) {
    update_to_nearest<P, S, kMaster>(r);
  } else {
    RandomBlock random;
    Results results;
    for (std::int64_t at = 0; at < r.count; at += kBlock) {
      const std::int64_t count = r.count - at < kBlock ? r.count - at : kBlock;
      draw(random, r, at, count);
      if (update_block<P, S, kMaster>(results, r, at, count)) {
        round_block<P, S, kMaster, true>(r, results, random, at, count);
      } else {
        round_block<P, S, kMaster, false>(r, results, random, at, count);
      }
    }
  }
}

template <typename P, typename S>
void update_of(const AdamWRange& r) {
  r.master != nullptr ? update<P, S, true>(r) : update<P, S, false>(r);
}

/// Calls f with an element of a type that the optimizer keeps.
template <typename F>
[[gnu::always_inline]] inline void with_type(DType dtype, F&& f) {
  if (dtype == DType::bf16) return f(Bf16{});
  if (dtype == DType::f16) return f(F16{});
  return f(float{});
}

void adamw(const AdamWRange& r) {
  with_type(r.dtype, [&](auto p) {
    using P = decltype(p);
    r.states == DType::bf16 ? update_of<P, Bf16>(r) : update_of<P, float>(r);
  });
}

void add(void* to, const void* x, DType dtype, std::int64_t count) {
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* __restrict sum = static_cast<T*>(to);
    const T* __restrict more = static_cast<const T*>(x);
    for (std::int64_t i = 0; i < count; ++i) put(sum[i], widened(sum[i]) + widened(more[i]));
  });
}

void squares(Lanes& sums, const void* x, DType dtype, std::int64_t count) {
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* values = static_cast<const T*>(x);
    double lanes[kLanes] = {};
    std::int64_t at = 0;
    for (; at + kLanes <= count; at += kLanes)
      for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        const double value = static_cast<double>(widened(values[at + lane]));
        lanes[lane] += value * value;
      }
    for (; at < count; ++at) {
      const double value = static_cast<double>(widened(values[at]));
      lanes[at % kLanes] += value * value;
    }
    double* to = sums.data();
    for (std::int64_t lane = 0; lane < kLanes; ++lane) to[lane] = lanes[lane];
  });
}

}  // namespace
}  // namespace shardplan::validator::host
