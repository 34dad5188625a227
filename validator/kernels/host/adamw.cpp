#include <bit>
#include <cmath>

#include "device/random.h"
#include "kernels/host/adamw_factors.h"
#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

/// Rounds to nearest, except into bf16, which is rounded stochastically with `random`.
template <typename T>
T stored(Wide<T> x, std::uint16_t random) {
  if constexpr (std::is_same_v<T, bf16>) {
    return Eigen::numext::bit_cast<bf16>(stochastic_bf16(std::bit_cast<std::uint32_t>(x), random));
  } else {
    return static_cast<T>(x);
  }
}

/// P: parameter and gradient; S: moments. The home of the update is the master if there is one.
template <typename P, typename S>
void update(const AdamW& o) {
  using W = Wide<P>;
  const auto factors = step_factors(o);
  if (!factors) return;
  const W scale = static_cast<W>(factors->gradient), decay = static_cast<W>(factors->decay);
  const W step_size = static_cast<W>(factors->step_size);
  const W inverse_root = static_cast<W>(factors->inverse_root);
  const W beta1 = o.beta1, beta2 = o.beta2;
  float* master = optional_data<float>(o.master);
  P* parameter = o.parameter.as<P>();
  for (std::int64_t i = 0; i < o.parameter.numel(); ++i) {
    const W g = widen(o.gradient.as<P>()[i]) * scale;
    S& m = o.first_moment.as<S>()[i];
    S& v = o.second_moment.as<S>()[i];
    const W first = beta1 * static_cast<W>(m) + (1 - beta1) * g;
    const W second = beta2 * static_cast<W>(v) + (1 - beta2) * g * g;
    const W denominator = std::sqrt(second) * inverse_root + o.epsilon;
    const W old = master != nullptr ? static_cast<W>(master[i]) : widen(parameter[i]);
    const W updated = old * decay - step_size * first / denominator;
    const std::uint64_t bits = random_bits(o.seed, static_cast<std::uint64_t>(o.step),
                                           static_cast<std::uint64_t>(o.first_element + i));
    m = stored<S>(static_cast<Wide<S>>(first), static_cast<std::uint16_t>(bits >> 16U));
    v = stored<S>(static_cast<Wide<S>>(second), static_cast<std::uint16_t>(bits >> 32U));
    if (master != nullptr) {
      master[i] = static_cast<float>(updated);
      parameter[i] = static_cast<P>(updated);
    } else {
      parameter[i] = stored<P>(updated, static_cast<std::uint16_t>(bits));
    }
  }
}

}  // namespace

void adamw(const AdamW& o) {
  dispatch(o.parameter.dtype, [&](auto p) {
    dispatch(o.first_moment.dtype, [&](auto s) { update<decltype(p), decltype(s)>(o); });
  });
}

}  // namespace shardplan::validator::host
