#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

/// The probabilities of one row's experts.
template <typename T>
void softmax(const T* logits, std::vector<Wide<T>>& p) {
  Wide<T> largest = widen(logits[0]), sum = 0;
  for (std::size_t e = 1; e < p.size(); ++e) largest = std::max(largest, widen(logits[e]));
  for (std::size_t e = 0; e < p.size(); ++e) sum += p[e] = std::exp(widen(logits[e]) - largest);
  for (Wide<T>& x : p) x /= sum;
}

/// What the row's weights are divided by.
template <typename W>
W divisor(const std::vector<W>& p, const std::int32_t* experts, std::int64_t k, bool renormalise) {
  if (!renormalise) return 1;
  W sum = 0;
  for (std::int64_t j = 0; j < k; ++j) sum += p[static_cast<std::size_t>(experts[j])];
  return sum;
}

template <typename T>
void route(const RouteForward& o) {
  using W = Wide<T>;
  const std::int64_t count = o.logits.width(), k = o.weights.width();
  std::vector<W> p(static_cast<std::size_t>(count));
  std::vector<std::int32_t> order(p.size());
  std::vector<W> sums(p.size());
  for (std::int64_t r = 0; r < o.logits.rows(); ++r) {
    const T* logits = o.logits.as<T>() + r * count;
    softmax(logits, p);
    std::iota(order.begin(), order.end(), 0);
    if (o.evenly) {
      std::rotate(order.begin(), order.begin() + r * k % count, order.end());
    } else {
      std::partial_sort(order.begin(), order.begin() + k, order.end(),
                        [&](std::int32_t a, std::int32_t b) {
                          const W la = widen(logits[a]), lb = widen(logits[b]);
                          return la != lb ? la > lb : a < b;
                        });
    }
    std::int32_t* experts = o.experts.as<std::int32_t>() + r * k;
    std::copy_n(order.begin(), k, experts);
    const W by = divisor(p, experts, k, o.renormalise);
    for (std::int64_t j = 0; j < k; ++j) {
      o.weights.as<Statistic<T>>()[r * k + j] = p[static_cast<std::size_t>(experts[j])] / by;
      if (!o.balance.empty()) o.balance.as<Statistic<T>>()[experts[j]] += 1;
    }
    for (std::size_t e = 0; e < p.size(); ++e) sums[e] += p[e];
  }
  if (o.balance.empty()) return;
  for (std::int64_t e = 0; e < count; ++e)
    o.balance.as<Statistic<T>>()[count + e] += sums[static_cast<std::size_t>(e)];
}

template <typename T>
void route_back(const RouteBackward& o) {
  using W = Wide<T>;
  const std::int64_t count = o.logits.width(), k = o.dweights.width();
  std::vector<W> p(static_cast<std::size_t>(count)), dp(p.size());
  for (std::int64_t r = 0; r < o.logits.rows(); ++r) {
    T* logits = o.logits.as<T>() + r * count;
    const std::int32_t* experts = o.experts.as<std::int32_t>() + r * k;
    const Statistic<T>* dw = o.dweights.as<Statistic<T>>() + r * k;
    softmax(logits, p);
    const W by = divisor(p, experts, k, o.renormalise);
    W shared = 0;  // of the sum that all weights are divided by
    if (o.renormalise)
      for (std::int64_t j = 0; j < k; ++j)
        shared += dw[j] * p[static_cast<std::size_t>(experts[j])] / by;
    for (std::int64_t e = 0; e < count; ++e)
      dp[static_cast<std::size_t>(e)] =
          o.balance.empty() ? W(0) : o.balance_scale * o.balance.as<Statistic<T>>()[e];
    for (std::int64_t j = 0; j < k; ++j)
      dp[static_cast<std::size_t>(experts[j])] += (dw[j] - shared) / by;
    const W mean = std::inner_product(p.begin(), p.end(), dp.begin(), W(0));
    for (std::size_t e = 0; e < p.size(); ++e) logits[e] = static_cast<T>(p[e] * (dp[e] - mean));
  }
}

template <typename T>
void combine_back(const CombineBackward& o) {
  using W = Wide<T>;
  const std::int64_t k = o.weights.width(), width = o.slots.width();
  for (std::int64_t a = 0; a < o.weights.numel(); ++a) {
    Statistic<T>& weight = o.weights.as<Statistic<T>>()[a];
    const std::int32_t place = o.places.as<std::int32_t>()[a];
    const T* dout = o.dout.as<T>() + a / k * width;
    W slope = 0;
    if (place >= 0) {
      T* slot = o.slots.as<T>() + place * width;
      for (std::int64_t i = 0; i < width; ++i) {
        slope += widen(slot[i]) * widen(dout[i]);
        slot[i] = static_cast<T>(weight * widen(dout[i]));
      }
    }
    weight = slope;
  }
}

}  // namespace

void route_forward(const RouteForward& o) {
  dispatch(o.logits.dtype, [&](auto zero) { route<decltype(zero)>(o); });
}

void route_backward(const RouteBackward& o) {
  dispatch(o.logits.dtype, [&](auto zero) { route_back<decltype(zero)>(o); });
}

void place_rows(const PlaceRows& o) {
  const std::int64_t count = o.counts.numel(), k = o.experts.width(), local = count / o.owners;
  std::vector<std::int64_t> next(static_cast<std::size_t>(count)), end(next.size());
  std::int32_t* counts = o.counts.as<std::int32_t>();
  std::fill_n(counts, count, 0);
  for (std::int64_t a = 0; a < o.experts.numel(); ++a) ++counts[o.experts.as<std::int32_t>()[a]];
  std::int64_t filled = 0;
  for (std::int64_t e = 0; e < count; ++e) {
    const auto at = static_cast<std::size_t>(e);
    next[at] = o.capacity > 0 ? (e % local * o.owners + e / local) * o.capacity : filled;
    end[at] = next[at] + (o.capacity > 0 ? o.capacity : counts[e]);
    filled += slots_given(counts[e], o.multiple);
  }
  std::fill_n(o.rows.as<std::int32_t>(), o.rows.numel(), -1);
  std::int64_t dropped = 0;
  for (std::int64_t a = 0; a < o.experts.numel(); ++a) {
    const auto e = static_cast<std::size_t>(o.experts.as<std::int32_t>()[a]);
    const bool fits = next[e] < end[e];
    const std::int64_t place = fits ? next[e]++ : -1;
    o.places.as<std::int32_t>()[a] = static_cast<std::int32_t>(place);
    if (fits) o.rows.as<std::int32_t>()[place] = static_cast<std::int32_t>(a / k);
    dropped += fits ? 0 : 1;
  }
  if (o.dropped.empty()) return;
  dispatch(o.dropped.dtype, [&](auto zero) {
    using T = decltype(zero);
    o.dropped.as<T>()[0] += static_cast<T>(static_cast<double>(dropped));
  });
}

void combine_rows(const CombineRows& o) {
  dispatch(o.out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t k = o.places.width(), width = o.out.width();
    const Statistic<T>* weights = optional_data<Statistic<T>>(o.weights);
    for (std::int64_t r = 0; r < o.out.rows(); ++r)
      for (std::int64_t i = 0; i < width; ++i) {
        T& out = o.out.as<T>()[r * width + i];
        Wide<T> sum = o.accumulate ? widen(out) : Wide<T>(0);
        for (std::int64_t j = 0; j < k; ++j) {
          const std::int32_t place = o.places.as<std::int32_t>()[r * k + j];
          if (place < 0) continue;
          const Wide<T> x = widen(o.slots.as<T>()[place * width + i]);
          sum += weights == nullptr ? x : weights[r * k + j] * x;
        }
        out = static_cast<T>(sum);
      }
  });
}

void combine_backward(const CombineBackward& o) {
  dispatch(o.slots.dtype, [&](auto zero) { combine_back<decltype(zero)>(o); });
}

void balance_loss(const Tensor& loss, const Tensor& balance, float scale) {
  dispatch(loss.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t count = balance.width();
    const T* assigned = balance.as<T>();
    T sum(0);
    for (std::int64_t e = 0; e < count; ++e) sum += assigned[e] * assigned[count + e];
    loss.as<T>()[0] += static_cast<T>(scale) * sum;
  });
}

}  // namespace shardplan::validator::host
