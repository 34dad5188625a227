#include <cmath>
#include <numbers>

#include "device/random.h"
#include "kernels/host/kernels.h"
#include "kernels/host/vectors/vectors.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

void store_total(const Tensor& out, double total, bool accumulate) {
  dispatch(out.dtype, [&](auto statistic) {
    using S = decltype(statistic);
    S& sum = out.as<S>()[0];
    sum = static_cast<S>((accumulate ? static_cast<double>(sum) : 0) + total);
  });
}

template <typename Term>
void reduce(const Tensor& out, const Tensor& x, bool accumulate, Term&& term) {
  dispatch(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    double total = 0;
    for (std::int64_t i = 0; i < x.numel(); ++i)
      total += term(static_cast<double>(widen(x.as<T>()[i])));
    store_total(out, total, accumulate);
  });
}

}  // namespace

void fill(const Tensor& x, float value) {
  dispatch(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < x.numel(); ++i) x.as<T>()[i] = static_cast<T>(value);
  });
}

void fill_normal(const Tensor& x, float stddev, std::uint32_t seed, std::int64_t first_element) {
  dispatch(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::uint64_t bits =
          random_bits(seed, kNormalStream, static_cast<std::uint64_t>(first_element + i));
      const float u1 = unit_interval(static_cast<std::uint32_t>(bits));
      const float u2 = unit_interval(static_cast<std::uint32_t>(bits >> 32U));
      const float normal =
          std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi_v<float> * u2);
      x.as<T>()[i] = static_cast<T>(stddev * normal);
    }
  });
}

void cast(const Tensor& to, const Tensor& from) {
  dispatch(from.dtype, [&](auto source) {
    using S = decltype(source);
    dispatch(to.dtype, [&](auto target) {
      using T = decltype(target);
      for (std::int64_t i = 0; i < from.numel(); ++i)
        to.as<T>()[i] = static_cast<T>(widen(from.as<S>()[i]));
    });
  });
}

void add(const Tensor& to, const Tensor& x) {
  dispatch(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < x.numel(); ++i)
      to.as<T>()[i] = static_cast<T>(widen(to.as<T>()[i]) + widen(x.as<T>()[i]));
  });
}

void sum(const Tensor& out, const Tensor& x, bool accumulate) {
  reduce(out, x, accumulate, [](double v) { return v; });
}

/// As the host's cores take it where gradients are there: the same bits.
void squared_norm(const Tensor& out, const Tensor& x, bool accumulate) {
  if (x.dtype == DType::f64) return reduce(out, x, accumulate, [](double v) { return v * v; });
  store_total(out, sum_of_squares(*vectors_of_this_machine().front(), x), accumulate);
}

}  // namespace shardplan::validator::host
