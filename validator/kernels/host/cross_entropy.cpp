#include <algorithm>
#include <cmath>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {

void cross_entropy(const CrossEntropy& o) {
  dispatch(o.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const std::int64_t width = o.logits.width();
    for (std::int64_t r = 0; r < o.logits.rows(); ++r) {
      T* row = o.logits.as<T>() + r * width;
      const std::int32_t target = o.targets.as<std::int32_t>()[r];
      auto& loss = o.losses.as<Statistic<T>>()[r];
      if (target < 0) {
        loss = 0;
        std::fill(row, row + width, T(0));
        continue;
      }
      W most = widen(row[0]);
      for (std::int64_t i = 1; i < o.vocabulary; ++i) most = std::max(most, widen(row[i]));
      W total = 0;
      for (std::int64_t i = 0; i < o.vocabulary; ++i) total += std::exp(widen(row[i]) - most);
      loss = std::log(total) + most - widen(row[target]);
      const W scale = static_cast<W>(o.gradient_scale);
      for (std::int64_t i = 0; i < o.vocabulary; ++i) {
        const W p = std::exp(widen(row[i]) - most) / total;
        row[i] = static_cast<T>((p - (i == target ? 1 : 0)) * scale);
      }
      std::fill(row + o.vocabulary, row + width, T(0));
    }
  });
}

}  // namespace shardplan::validator::host
