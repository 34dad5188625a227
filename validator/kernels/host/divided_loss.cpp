#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {

void loss_parts(const LossParts& o) {
  dispatch(o.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    for (std::int64_t r = 0; r < o.logits.rows(); ++r) {
      const T* row = o.logits.as<T>() + r * o.logits.width();
      const std::int64_t target = o.targets.as<std::int32_t>()[r] - o.first;
      W most = -std::numeric_limits<W>::infinity(), total = 0;
      for (std::int64_t i = 0; i < o.vocabulary; ++i) most = std::max(most, widen(row[i]));
      for (std::int64_t i = 0; i < o.vocabulary; ++i) total += std::exp(widen(row[i]) - most);
      auto* part = o.parts.as<Statistic<T>>() + r * LossParts::kNumbers;
      part[0] = most;
      part[1] = total;
      part[2] = target >= 0 && target < o.vocabulary ? widen(row[target]) : W(0);
    }
  });
}

void joined_cross_entropy(const JoinedCrossEntropy& o) {
  const CrossEntropy& c = o.loss;
  dispatch(c.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const std::int64_t width = c.logits.width(), rows = c.logits.rows();
    const std::int64_t ranks = o.all.rows() / rows;
    for (std::int64_t r = 0; r < rows; ++r) {
      T* row = c.logits.as<T>() + r * width;
      const std::int32_t token = c.targets.as<std::int32_t>()[r];
      auto& loss = c.losses.as<Statistic<T>>()[r];
      if (token < 0) {
        loss = 0;
        std::fill(row, row + width, T(0));
        continue;
      }
      const auto part = [&](std::int64_t rank) {
        return o.all.as<Statistic<T>>() + (rank * rows + r) * LossParts::kNumbers;
      };
      W most = part(0)[0], total = 0, target = 0;
      for (std::int64_t k = 1; k < ranks; ++k) most = std::max(most, part(k)[0]);
      for (std::int64_t k = 0; k < ranks; ++k) {
        total += part(k)[1] * std::exp(part(k)[0] - most);
        target += part(k)[2];
      }
      loss = std::log(total) + most - target;
      const W scale = static_cast<W>(c.gradient_scale);
      for (std::int64_t i = 0; i < c.vocabulary; ++i) {
        const W p = std::exp(widen(row[i]) - most) / total;
        row[i] = static_cast<T>((p - (i + o.first == token ? 1 : 0)) * scale);
      }
      std::fill(row + c.vocabulary, row + width, T(0));
    }
  });
}

}  // namespace shardplan::validator::host
