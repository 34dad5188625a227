#include <cmath>
#include <vector>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

template <typename T>
void forward(const NormForward& o) {
  using W = Wide<T>;
  const std::int64_t width = o.x.width();
  const T* x = o.x.as<T>();
  const T* branch = optional_data<T>(o.branch);
  const T* weight = o.weight.as<T>();
  const T* bias = optional_data<T>(o.bias);
  T* sum = optional_data<T>(o.sum);
  T* out = o.out.as<T>();
  for (std::int64_t r = 0; r < o.x.rows(); ++r) {
    const T* row = x + r * width;
    if (branch != nullptr) {
      for (std::int64_t i = 0; i < width; ++i)
        sum[r * width + i] = static_cast<T>(widen(row[i]) + widen(branch[r * width + i]));
      row = sum + r * width;
    }
    W mean = 0, square = 0;
    if (o.kind == NormKind::layer) {
      for (std::int64_t i = 0; i < width; ++i) mean += widen(row[i]);
      mean /= static_cast<W>(width);
      o.mean.as<Statistic<T>>()[r] = mean;
    }
    for (std::int64_t i = 0; i < width; ++i) {
      const W centred = widen(row[i]) - mean;
      square += centred * centred;
    }
    const W rstd = 1 / std::sqrt(square / static_cast<W>(width) + static_cast<W>(o.epsilon));
    o.rstd.as<Statistic<T>>()[r] = rstd;
    for (std::int64_t i = 0; i < width; ++i) {
      const W shift = bias != nullptr ? widen(bias[i]) : 0;
      out[r * width + i] = static_cast<T>((widen(row[i]) - mean) * rstd * widen(weight[i]) + shift);
    }
  }
}

template <typename T>
void add_to(const Tensor& to, const std::vector<Wide<T>>& sums, bool accumulate) {
  if (to.empty()) return;
  T* out = to.as<T>();
  for (std::size_t i = 0; i < sums.size(); ++i)
    out[i] = static_cast<T>((accumulate ? widen(out[i]) : 0) + sums[i]);
}

/// With x̂ = (x − mean)·rstd and g = dout·weight:
/// dx = rstd·(g − mean(g·x̂)·x̂ − mean(g)), the last term for layer norm only.
template <typename T>
void backward(const NormBackward& o) {
  using W = Wide<T>;
  const std::int64_t width = o.x.width();
  const T* weight = o.weight.as<T>();
  std::vector<W> dweight(static_cast<std::size_t>(width)), dbias(dweight);
  for (std::int64_t r = 0; r < o.x.rows(); ++r) {
    const T* x = o.x.as<T>() + r * width;
    const T* dout = o.dout.as<T>() + r * width;
    T* dx = o.dx.as<T>() + r * width;
    const bool layer = o.kind == NormKind::layer;
    const W mean = layer ? o.mean.as<Statistic<T>>()[r] : 0;
    const W rstd = o.rstd.as<Statistic<T>>()[r];
    W along = 0, level = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      const W normal = (widen(x[i]) - mean) * rstd;
      const W d = widen(dout[i]);
      along += d * widen(weight[i]) * normal;
      level += d * widen(weight[i]);
      dweight[static_cast<std::size_t>(i)] += d * normal;
      dbias[static_cast<std::size_t>(i)] += d;
    }
    along /= static_cast<W>(width);
    level = layer ? level / static_cast<W>(width) : 0;
    for (std::int64_t i = 0; i < width; ++i) {
      const W normal = (widen(x[i]) - mean) * rstd;
      const W d = rstd * (widen(dout[i]) * widen(weight[i]) - along * normal - level);
      dx[i] = static_cast<T>((o.accumulate_dx ? widen(dx[i]) : 0) + d);
    }
  }
  add_to<T>(o.dweight, dweight, o.accumulate_weights);
  add_to<T>(o.dbias, dbias, o.accumulate_weights);
}

}  // namespace

void norm_forward(const NormForward& o) {
  dispatch(o.x.dtype, [&](auto zero) { forward<decltype(zero)>(o); });
}

void norm_backward(const NormBackward& o) {
  dispatch(o.x.dtype, [&](auto zero) { backward<decltype(zero)>(o); });
}

}  // namespace shardplan::validator::host
