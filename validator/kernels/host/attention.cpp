#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/host/kernels.h"
#include "memory/elements.h"

namespace shardplan::validator::host {
namespace {

/// Addresses of the heads of one token in a packed row.
template <typename T>
struct Row {
  T* data = nullptr;
  const Heads* heads = nullptr;
  std::int64_t group() const { return heads->query_heads / heads->key_value_heads; }
  T* query(std::int64_t head) const { return data + head * heads->head_dim; }
  T* key(std::int64_t head) const {
    return data + (heads->query_heads + head / group()) * heads->head_dim;
  }
  T* value(std::int64_t head) const {
    return data + (heads->query_heads + heads->key_value_heads + head / group()) * heads->head_dim;
  }
};

template <typename T>
Row<T> row_of(const Tensor& packed, const Heads& heads, std::int64_t row) {
  return {packed.as<T>() + row * heads.packed_width(), &heads};
}

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
  std::vector<W> weights(static_cast<std::size_t>(h.sequence));
  std::vector<W> mixed(static_cast<std::size_t>(h.head_dim));
  for (std::int64_t b = 0; b < h.batch; ++b)
    for (std::int64_t head = 0; head < h.query_heads; ++head)
      for (std::int64_t i = 0; i < h.sequence; ++i) {
        const T* q = row_of<T>(o.qkv, h, b * h.sequence + i).query(head);
        W most = -std::numeric_limits<W>::infinity();
        for (std::int64_t j = 0; j <= i; ++j) {
          const T* k = row_of<T>(o.qkv, h, b * h.sequence + j).key(head);
          W& score = weights[static_cast<std::size_t>(j)];
          score = dot(q, k, h.head_dim) * scale_of<T>(h);
          most = std::max(most, score);
        }
        W total = 0;
        std::fill(mixed.begin(), mixed.end(), W{0});
        for (std::int64_t j = 0; j <= i; ++j) {
          const W p = std::exp(weights[static_cast<std::size_t>(j)] - most);
          total += p;
          const T* v = row_of<T>(o.qkv, h, b * h.sequence + j).value(head);
          for (std::int64_t d = 0; d < h.head_dim; ++d)
            mixed[static_cast<std::size_t>(d)] += p * widen(v[d]);
        }
        o.lse.as<Statistic<T>>()[(b * h.query_heads + head) * h.sequence + i] =
            most + std::log(total);
        T* out = o.out.as<T>() + (b * h.sequence + i) * h.query_width() + head * h.head_dim;
        for (std::int64_t d = 0; d < h.head_dim; ++d)
          out[d] = static_cast<T>(mixed[static_cast<std::size_t>(d)] / total);
      }
}

/// With p = exp(score − lse): dv = pᵀ·dout, dp = dout·vᵀ, ds = p·(dp − Σ dout·out), dq =
/// ds·k·scale, dk = dsᵀ·q·scale.
template <typename T>
void backward(const AttentionBackward& o) {
  using W = Wide<T>;
  const Heads& h = o.heads;
  std::vector<W> gradient(static_cast<std::size_t>(h.rows() * h.packed_width()));
  for (std::int64_t b = 0; b < h.batch; ++b)
    for (std::int64_t head = 0; head < h.query_heads; ++head)
      for (std::int64_t i = 0; i < h.sequence; ++i) {
        const std::int64_t row = b * h.sequence + i;
        const Row<T> query = row_of<T>(o.qkv, h, row);
        const Row<W> dquery{gradient.data() + row * h.packed_width(), &h};
        const T* dout = o.dout.as<T>() + row * h.query_width() + head * h.head_dim;
        const T* out = o.out.as<T>() + row * h.query_width() + head * h.head_dim;
        const W delta = dot(dout, out, h.head_dim);
        const W lse = o.lse.as<Statistic<T>>()[(b * h.query_heads + head) * h.sequence + i];
        for (std::int64_t j = 0; j <= i; ++j) {
          const Row<T> other = row_of<T>(o.qkv, h, b * h.sequence + j);
          const Row<W> dother{gradient.data() + (b * h.sequence + j) * h.packed_width(), &h};
          const W score = dot(query.query(head), other.key(head), h.head_dim) * scale_of<T>(h);
          const W p = std::exp(score - lse);
          const W ds = p * (dot(dout, other.value(head), h.head_dim) - delta) * scale_of<T>(h);
          for (std::int64_t d = 0; d < h.head_dim; ++d) {
            dother.value(head)[d] += p * widen(dout[d]);
            dquery.query(head)[d] += ds * widen(other.key(head)[d]);
            dother.key(head)[d] += ds * widen(query.query(head)[d]);
          }
        }
      }
  T* dqkv = o.dqkv.as<T>();
  for (std::size_t i = 0; i < gradient.size(); ++i) dqkv[i] = static_cast<T>(gradient[i]);
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
