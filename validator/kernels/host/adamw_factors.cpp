#include "kernels/host/adamw_factors.h"

#include <algorithm>
#include <cmath>

#include "device/random.h"

namespace shardplan::validator::host {

std::optional<StepFactors> step_factors(const AdamW& o) {
  constexpr double kNormFloor = 1e-6;  // as torch.nn.utils.clip_grad_norm_
  const Clipping& c = o.clipping;
  const double squared = c.squared_norm.dtype == DType::f64
                             ? c.squared_norm.as<double>()[0]
                             : static_cast<double>(c.squared_norm.as<float>()[0]);
  if (!std::isfinite(squared)) return std::nullopt;
  const auto wide = [](float x) { return static_cast<double>(x); };
  StepFactors f;
  f.gradient = wide(c.inverse_scale);
  if (c.largest_norm > 0)
    f.gradient *= std::min(
        1.0, wide(c.largest_norm) / (std::sqrt(squared) * wide(c.inverse_scale) + kNormFloor));
  const auto step = static_cast<double>(o.step);
  f.decay = 1 - wide(o.learning_rate) * wide(o.weight_decay);
  f.step_size = wide(o.learning_rate) / (1 - std::pow(wide(o.beta1), step));
  f.inverse_root = 1 / std::sqrt(1 - std::pow(wide(o.beta2), step));
  return f;
}

std::optional<AdamWFactors> adamw_factors(const AdamW& o) {
  const auto f = step_factors(o);
  if (!f) return std::nullopt;
  return AdamWFactors{
      .gradient = static_cast<float>(f->gradient),
      .beta1 = o.beta1,
      .beta2 = o.beta2,
      .decay = static_cast<float>(f->decay),
      .step_size = static_cast<float>(f->step_size),
      .inverse_root = static_cast<float>(f->inverse_root),
      .epsilon = o.epsilon,
      .random = random_stream(o.seed, static_cast<std::uint64_t>(o.step)),
  };
}

AdamWRange adamw_range(const AdamW& o, const AdamWFactors& factors, std::int64_t first,
                       std::int64_t count) {
  return {.parameter = o.parameter.slice(first, count).data(),
          .master = o.master.empty() ? nullptr : o.master.as<float>() + first,
          .gradient = o.gradient.slice(first, count).data(),
          .first = o.first_moment.slice(first, count).data(),
          .second = o.second_moment.slice(first, count).data(),
          .count = count,
          .dtype = o.parameter.dtype,
          .states = o.first_moment.dtype,
          .first_element = static_cast<std::uint64_t>(o.first_element + first),
          .factors = factors};
}

}  // namespace shardplan::validator::host
