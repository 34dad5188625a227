// Where queries, keys and values lie in packed rows, for our own attention kernels.
#pragma once

#include <cstdint>

#include "device/operands.h"
#include "kernels/cuda/launch.h"

namespace shardplan::validator::cuda {

/// Offsets are from the first row that takes part (first_query, first_key), which is counted as 0.
struct HeadLayout {
  int sequence;  // rows of a sequence, of queries and of keys
  int queries;   // of them, those that take part
  int keys;
  bool causal;  // otherwise each query sees all keys
  int query_heads;
  int key_heads;
  int head_dim;
  int packed;   // elements of a packed row
  int key_row;  // elements of a row of keys and values
  int width;    // elements of an output row
  float scale;

  constexpr int group() const { return query_heads / key_heads; }
  /// The last key that a query sees.
  constexpr int last_key(int query) const { return causal ? query : keys - 1; }
  /// Element offsets of a head's first row in what first_query and first_key point to.
  constexpr std::int64_t query(int batch, int head) const {
    return std::int64_t{batch} * sequence * packed + head * head_dim;
  }
  constexpr std::int64_t key(int batch, int key_head) const {
    return std::int64_t{batch} * sequence * key_row + key_head * head_dim;
  }
  constexpr std::int64_t value(int batch, int key_head) const {
    return key(batch, key_heads + key_head);
  }
  /// The same of the gradients of keys, in what first_key_gradient points to.
  constexpr std::int64_t key_gradient(int batch, int key_head) const {
    return query(batch, key_head);
  }
  constexpr std::int64_t value_gradient(int batch, int key_head) const {
    return query(batch, key_heads + key_head);
  }
  constexpr std::int64_t output(int batch, int head) const {
    return std::int64_t{batch} * sequence * width + head * head_dim;
  }
  /// Index of a query head's first row statistics, [batch, query_heads, sequence].
  constexpr std::int64_t statistics(int batch, int head) const {
    return (std::int64_t{batch} * query_heads + head) * sequence;
  }
};

inline HeadLayout layout_of(const Heads& heads, const OtherKeys& others) {
  const bool own = others.keys_values.empty();
  return {.sequence = static_cast<int>(heads.sequence),
          .queries = static_cast<int>(own ? heads.sequence : others.queries.count),
          .keys = static_cast<int>(own ? heads.sequence : others.keys.count),
          .causal = own,
          .query_heads = static_cast<int>(heads.query_heads),
          .key_heads = static_cast<int>(heads.key_value_heads),
          .head_dim = static_cast<int>(heads.head_dim),
          .packed = static_cast<int>(heads.packed_width()),
          .key_row = static_cast<int>(own ? heads.packed_width()
                                          : 2 * heads.key_value_heads * heads.head_dim),
          .width = static_cast<int>(heads.query_width()),
          .scale = 1.0F / __builtin_sqrtf(static_cast<float>(heads.head_dim))};
}

/// The first row of queries that takes part, of packed rows or of outputs.
template <class T>
T* first_query(const Tensor& rows, const OtherKeys& others) {
  return reinterpret_cast<T*>(rows.address) + others.queries.first * rows.width();
}
/// The first keys that take part; values lie behind the keys of each row.
template <class T>
T* first_key(const Tensor& qkv, const Heads& heads, const OtherKeys& others) {
  if (others.keys_values.empty()) return reinterpret_cast<T*>(qkv.address) + heads.query_width();
  return reinterpret_cast<T*>(others.keys_values.address) +
         others.keys.first * others.keys_values.width();
}
template <class T>
T* first_key_gradient(const Tensor& dqkv, const Heads& heads, const OtherKeys& others) {
  return reinterpret_cast<T*>(dqkv.address) + heads.query_width() +
         others.keys.first * heads.packed_width();
}
/// The statistics of the first query.
inline float* first_statistic(const Tensor& statistics, const OtherKeys& others) {
  return reinterpret_cast<float*>(statistics.address) + others.queries.first;
}

constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;

/// Σ dout · out of each query, what the softmax's backward pass subtracts: in scratch, from the
/// first query on that takes part.
const float* attention_deltas(const Launch& launch, const AttentionBackward& o);

// The kernels behind make_flash_attention.
void flash_forward(const Launch& launch, const AttentionForward& o);
void flash_backward_queries(const Launch& launch, const AttentionBackward& o, const float* deltas);
void flash_backward_keys(const Launch& launch, const AttentionBackward& o, const float* deltas);

}  // namespace shardplan::validator::cuda
