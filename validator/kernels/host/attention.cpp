#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

/// Keys and values, wherever they lie: of each row first the keys of all heads.
template <typename T>
struct KeyRows {
  T* data = nullptr;
  std::int64_t stride = 0;  ///< elements of a row
  const Heads* heads = nullptr;
  std::int64_t group() const { return heads->query_heads / heads->key_value_heads; }
  T* key(std::int64_t row, std::int64_t head) const {
    return data + row * stride + head / group() * heads->head_dim;
  }
  T* value(std::int64_t row, std::int64_t head) const {
    return key(row, head) + heads->key_value_heads * heads->head_dim;
  }
};

/// In packed rows, behind the queries.
template <typename T>
KeyRows<T> keys_in(T* packed, const Heads& h) {
  return {packed + h.query_width(), h.packed_width(), &h};
}

template <typename T>
KeyRows<T> keys_of(const Tensor& qkv, const OtherKeys& others, const Heads& h) {
  if (others.keys_values.empty()) return keys_in(qkv.as<T>(), h);
  return {others.keys_values.as<T>(), others.keys_values.width(), &h};
}

/// Which keys each query sees, by rows of a sequence.
struct Sight {
  Sight(const OtherKeys& others, const Heads& h)
      : causal(others.keys_values.empty()),
        queries(causal ? Span{0, h.sequence} : others.queries),
        keys(causal ? Span{0, h.sequence} : others.keys) {}
  std::int64_t last_query() const { return queries.first + queries.count; }
  /// One behind the last key that query `i` sees; it sees those from keys.first on.
  std::int64_t last_key(std::int64_t i) const { return causal ? i + 1 : keys.first + keys.count; }

  bool causal;
  Span queries, keys;
};

template <typename T>
Wide<T> dot(const T* a, const T* b, std::int64_t n) {
  Wide<T> sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += widen(a[i]) * widen(b[i]);
  return sum;
}

template <typename T>
Wide<T> scale_of(const Heads& h) {
  return 1 / std::sqrt(static_cast<Wide<T>>(h.head_dim));
}

template <typename T>
void forward(const AttentionForward& o) {
  using W = Wide<T>;
  const Heads& h = o.heads;
  const Sight sight(o.others, h);
  const KeyRows<T> keys = keys_of<T>(o.qkv, o.others, h);
  std::vector<W> weights(static_cast<std::size_t>(h.sequence));
  std::vector<W> mixed(static_cast<std::size_t>(h.head_dim));
  for (std::int64_t b = 0; b < h.batch; ++b)
    for (std::int64_t head = 0; head < h.query_heads; ++head)
      for (std::int64_t i = sight.queries.first; i < sight.last_query(); ++i) {
        const std::int64_t row = b * h.sequence + i;
        const T* q = o.qkv.as<T>() + row * h.packed_width() + head * h.head_dim;
        W most = -std::numeric_limits<W>::infinity();
        for (std::int64_t j = sight.keys.first; j < sight.last_key(i); ++j) {
          W& score = weights[static_cast<std::size_t>(j)];
          score = dot(q, keys.key(b * h.sequence + j, head), h.head_dim) * scale_of<T>(h);
          most = std::max(most, score);
        }
        W total = 0;
        std::fill(mixed.begin(), mixed.end(), W{0});
        for (std::int64_t j = sight.keys.first; j < sight.last_key(i); ++j) {
          const W p = std::exp(weights[static_cast<std::size_t>(j)] - most);
          total += p;
          const T* v = keys.value(b * h.sequence + j, head);
          for (std::int64_t d = 0; d < h.head_dim; ++d)
            mixed[static_cast<std::size_t>(d)] += p * widen(v[d]);
        }
        o.lse.as<Statistic<T>>()[(b * h.query_heads + head) * h.sequence + i] =
            most + std::log(total);
        T* out = o.out.as<T>() + row * h.query_width() + head * h.head_dim;
        for (std::int64_t d = 0; d < h.head_dim; ++d)
          out[d] = static_cast<T>(mixed[static_cast<std::size_t>(d)] / total);
      }
}

/// Rounds columns [first, end) of some rows of each sequence.
template <typename T>
void store(const Tensor& dqkv, const std::vector<Wide<T>>& gradient, const Heads& h,
           const Span& rows, std::int64_t first, std::int64_t end) {
  for (std::int64_t b = 0; b < h.batch; ++b)
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i) {
      const std::int64_t at = (b * h.sequence + i) * h.packed_width();
      for (std::int64_t c = first; c < end; ++c)
        dqkv.as<T>()[at + c] = static_cast<T>(gradient[static_cast<std::size_t>(at + c)]);
    }
}

/// With p = exp(score − lse): dv = pᵀ·dout, dp = dout·vᵀ, ds = p·(dp − Σ dout·out), dq =
/// ds·k·scale, dk = dsᵀ·q·scale.
template <typename T>
void backward(const AttentionBackward& o) {
  using W = Wide<T>;
  const Heads& h = o.heads;
  const Sight sight(o.others, h);
  const KeyRows<T> keys = keys_of<T>(o.qkv, o.others, h);
  std::vector<W> gradient(static_cast<std::size_t>(h.rows() * h.packed_width()));
  const KeyRows<W> dkeys = keys_in(gradient.data(), h);
  for (std::int64_t b = 0; b < h.batch; ++b)
    for (std::int64_t head = 0; head < h.query_heads; ++head)
      for (std::int64_t i = sight.queries.first; i < sight.last_query(); ++i) {
        const std::int64_t row = b * h.sequence + i;
        const T* q = o.qkv.as<T>() + row * h.packed_width() + head * h.head_dim;
        W* dq = gradient.data() + row * h.packed_width() + head * h.head_dim;
        const T* dout = o.dout.as<T>() + row * h.query_width() + head * h.head_dim;
        const T* out = o.out.as<T>() + row * h.query_width() + head * h.head_dim;
        const W delta = dot(dout, out, h.head_dim);
        const W lse = o.lse.as<Statistic<T>>()[(b * h.query_heads + head) * h.sequence + i];
        for (std::int64_t j = sight.keys.first; j < sight.last_key(i); ++j) {
          const std::int64_t other = b * h.sequence + j;
          const T* k = keys.key(other, head);
          const W score = dot(q, k, h.head_dim) * scale_of<T>(h);
          const W p = std::exp(score - lse);
          const W dp = dot(dout, keys.value(other, head), h.head_dim);
          const W ds = p * (dp - delta) * scale_of<T>(h);
          for (std::int64_t d = 0; d < h.head_dim; ++d) {
            dkeys.value(other, head)[d] += p * widen(dout[d]);
            dq[d] += ds * widen(k[d]);
            dkeys.key(other, head)[d] += ds * widen(q[d]);
          }
        }
      }
  store<T>(o.dqkv, gradient, h, sight.queries, 0, h.query_width());
  store<T>(o.dqkv, gradient, h, sight.keys, h.query_width(), h.packed_width());
}

template <typename T>
void turn(const Tensor& qkv, const Tensor& table, const Heads& h, bool inverse) {
  using W = Wide<T>;
  const std::int64_t half = h.head_dim / 2;
  for (std::int64_t r = 0; r < h.rows(); ++r) {
    const auto* cosines = table.as<Statistic<T>>() + (r % h.sequence) * h.head_dim;
    const auto* sines = cosines + half;
    T* row = qkv.as<T>() + r * h.packed_width();
    for (std::int64_t head = 0; head < h.query_heads + h.key_value_heads; ++head) {
      T* x = row + head * h.head_dim;
      for (std::int64_t i = 0; i < half; ++i) {
        const W c = static_cast<W>(cosines[i]);
        const W s = inverse ? -static_cast<W>(sines[i]) : static_cast<W>(sines[i]);
        const W a = widen(x[i]), b = widen(x[i + half]);
        x[i] = static_cast<T>(a * c - b * s);
        x[i + half] = static_cast<T>(b * c + a * s);
      }
    }
  }
}

}  // namespace

void rotary(const Tensor& qkv, const Tensor& table, const Heads& heads, bool inverse) {
  dispatch(qkv.dtype, [&](auto zero) { turn<decltype(zero)>(qkv, table, heads, inverse); });
}

void attention_forward(const AttentionForward& o) {
  dispatch(o.qkv.dtype, [&](auto zero) { forward<decltype(zero)>(o); });
}

void attention_backward(const AttentionBackward& o) {
  dispatch(o.qkv.dtype, [&](auto zero) { backward<decltype(zero)>(o); });
}

}  // namespace shardplan::validator::host
