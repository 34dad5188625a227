#include <cmath>
#include <vector>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

/// Heads of a packed row that are normalised: q's, then k's.
std::int64_t normed_heads(const Heads& h) {
  return h.query_heads + h.key_value_heads;
}

template <typename T>
void forward(const HeadNormForward& o) {
  using W = Wide<T>;
  const Heads& h = o.heads;
  for (std::int64_t r = 0; r < h.rows(); ++r) {
    const T* in = o.qkv.as<T>() + r * h.packed_width();
    T* out = o.out.as<T>() + r * h.packed_width();
    for (std::int64_t head = 0; head < normed_heads(h); ++head) {
      const T* weight = (head < h.query_heads ? o.q_weight : o.k_weight).template as<T>();
      const T* x = in + head * h.head_dim;
      W square = 0;
      for (std::int64_t i = 0; i < h.head_dim; ++i) square += widen(x[i]) * widen(x[i]);
      const W rstd = 1 / std::sqrt(square / static_cast<W>(h.head_dim) + static_cast<W>(o.epsilon));
      o.rstd.as<Statistic<T>>()[r * normed_heads(h) + head] = rstd;
      for (std::int64_t i = 0; i < h.head_dim; ++i)
        out[head * h.head_dim + i] = static_cast<T>(widen(x[i]) * rstd * widen(weight[i]));
    }
    for (std::int64_t i = normed_heads(h) * h.head_dim; i < h.packed_width(); ++i) out[i] = in[i];
  }
}

template <typename T>
void backward(const HeadNormBackward& o) {
  using W = Wide<T>;
  const Heads& h = o.heads;
  std::vector<W> dq(static_cast<std::size_t>(h.head_dim)), dk(dq);
  for (std::int64_t r = 0; r < h.rows(); ++r) {
    for (std::int64_t head = 0; head < normed_heads(h); ++head) {
      const bool query = head < h.query_heads;
      const T* weight = (query ? o.q_weight : o.k_weight).template as<T>();
      std::vector<W>& dweight = query ? dq : dk;
      const T* x = o.qkv.as<T>() + r * h.packed_width() + head * h.head_dim;
      T* d = o.dqkv.as<T>() + r * h.packed_width() + head * h.head_dim;
      const W rstd = o.rstd.as<Statistic<T>>()[r * normed_heads(h) + head];
      W along = 0;
      for (std::int64_t i = 0; i < h.head_dim; ++i) {
        const W normal = widen(x[i]) * rstd;
        along += widen(d[i]) * widen(weight[i]) * normal;
        dweight[static_cast<std::size_t>(i)] += widen(d[i]) * normal;
      }
      along /= static_cast<W>(h.head_dim);
      for (std::int64_t i = 0; i < h.head_dim; ++i)
        d[i] = static_cast<T>(rstd * (widen(d[i]) * widen(weight[i]) - along * widen(x[i]) * rstd));
    }
  }
  const auto store = [&](const Tensor& to, const std::vector<W>& sums) {
    if (to.empty()) return;
    T* out = to.as<T>();
    for (std::size_t i = 0; i < sums.size(); ++i)
      out[i] = static_cast<T>((o.accumulate_weights ? widen(out[i]) : 0) + sums[i]);
  };
  store(o.dq_weight, dq);
  store(o.dk_weight, dk);
}

}  // namespace

void head_norm_forward(const HeadNormForward& o) {
  dispatch(o.qkv.dtype, [&](auto zero) { forward<decltype(zero)>(o); });
}

void head_norm_backward(const HeadNormBackward& o) {
  dispatch(o.qkv.dtype, [&](auto zero) { backward<decltype(zero)>(o); });
}

}  // namespace shardplan::validator::host
