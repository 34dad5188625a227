// Where queries, keys and values lie in packed rows, for our own attention kernels.
#pragma once

#include <cstdint>

#include "device/operands.h"
#include "kernels/cuda/launch.h"

namespace shardplan::validator::cuda {

struct HeadLayout {
  int sequence;
  int query_heads;
  int key_heads;
  int head_dim;
  int packed;  // elements of a packed row
  int width;   // elements of an output row
  float scale;

  constexpr int group() const { return query_heads / key_heads; }
  /// Element offsets of a head's first row in the packed tensor.
  constexpr std::int64_t query(int batch, int head) const {
    return std::int64_t{batch} * sequence * packed + head * head_dim;
  }
  constexpr std::int64_t key(int batch, int key_head) const {
    return query(batch, query_heads + key_head);
  }
  constexpr std::int64_t value(int batch, int key_head) const {
    return query(batch, query_heads + key_heads + key_head);
  }
  constexpr std::int64_t output(int batch, int head) const {
    return std::int64_t{batch} * sequence * width + head * head_dim;
  }
  /// Index of a query head's first row statistics, [batch, query_heads, sequence].
  constexpr std::int64_t statistics(int batch, int head) const {
    return (std::int64_t{batch} * query_heads + head) * sequence;
  }
};

inline HeadLayout layout_of(const Heads& heads) {
  return {.sequence = static_cast<int>(heads.sequence),
          .query_heads = static_cast<int>(heads.query_heads),
          .key_heads = static_cast<int>(heads.key_value_heads),
          .head_dim = static_cast<int>(heads.head_dim),
          .packed = static_cast<int>(heads.packed_width()),
          .width = static_cast<int>(heads.query_width()),
          .scale = 1.0F / __builtin_sqrtf(static_cast<float>(heads.head_dim))};
}

constexpr float kLog2E = 1.4426950408889634F;
constexpr float kLn2 = 0.6931471805599453F;

/// deltas[query] = Σ dout · out, what the softmax's backward pass subtracts.
void attention_deltas(const Launch& launch, float* deltas, const AttentionBackward& o);

// The kernels behind make_flash_attention.
void flash_forward(const Launch& launch, const AttentionForward& o);
void flash_backward_queries(const Launch& launch, const AttentionBackward& o, const float* deltas);
void flash_backward_keys(const Launch& launch, const AttentionBackward& o, const float* deltas);

}  // namespace shardplan::validator::cuda
