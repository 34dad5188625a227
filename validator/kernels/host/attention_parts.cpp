// What puts attention over several ranks' keys together.
#include <algorithm>
#include <cmath>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

template <typename T>
void merge(const AttentionMerge& o) {
  using S = Statistic<T>;
  const Heads& h = o.heads;
  for (std::int64_t b = 0; b < h.batch; ++b)
    for (std::int64_t head = 0; head < h.query_heads; ++head)
      for (std::int64_t i = o.queries.first; i < o.queries.first + o.queries.count; ++i) {
        const std::int64_t statistic = (b * h.query_heads + head) * h.sequence + i;
        const std::int64_t at = (b * h.sequence + i) * h.query_width() + head * h.head_dim;
        S& lse = o.lse.as<S>()[statistic];
        const S other = o.part_lse.as<S>()[statistic];
        const S most = std::max(lse, other);
        const S mine = std::exp(lse - most), theirs = std::exp(other - most);
        const S total = mine + theirs;
        lse = most + std::log(total);
        S* sum = o.sum.as<S>() + at;
        const T* part = o.part.as<T>() + at;
        for (std::int64_t d = 0; d < h.head_dim; ++d)
          sum[d] = (sum[d] * mine + widen(part[d]) * theirs) / total;
      }
}

template <typename To, typename From>
void copy(const ColumnCopy& o) {
  const std::int64_t batch = o.to.rows() / o.sequence;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = o.rows.first; i < o.rows.first + o.rows.count; ++i) {
      const std::int64_t row = b * o.sequence + i;
      To* to = o.to.as<To>() + row * o.to.width() + o.to_column;
      const From* from = o.from.as<From>() + row * o.from.width() + o.from_column;
      for (std::int64_t c = 0; c < o.columns; ++c) {
        const auto value = static_cast<Wide<To>>(widen(from[c]));
        to[c] = static_cast<To>(o.accumulate ? widen(to[c]) + value : value);
      }
    }
}

}  // namespace

void merge_attention(const AttentionMerge& o) {
  dispatch(o.part.dtype, [&](auto zero) { merge<decltype(zero)>(o); });
}

void copy_columns(const ColumnCopy& o) {
  dispatch(o.to.dtype, [&](auto to) {
    dispatch(o.from.dtype, [&](auto from) { copy<decltype(to), decltype(from)>(o); });
  });
}

}  // namespace shardplan::validator::host
