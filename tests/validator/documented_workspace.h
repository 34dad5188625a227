// The CUDA back end's workspace as docs/explanation/validation.md states it, with cuDNN.
#pragma once

#include <algorithm>

#include "device/backend.h"

namespace shardplan::validator {

inline std::int64_t documented_cuda_workspace(const StepShapes& s) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const Heads& h = s.heads;
  if (h.query_heads == 0) return 32 * kMiB;
  const std::int64_t embedding =
      6 * round_up(4 * s.rows, 256) + round_up(8 * s.hidden * ((s.rows + 31) / 32), 256) + kMiB;
  std::int64_t attention = 4 * s.rows * h.query_heads;
  if (size_of(s.dtype) == 2 && h.head_dim % 8 == 0 && h.head_dim <= 128 && h.sequence > 1) {
    const std::int64_t copies = h.query_heads == h.key_value_heads ? 1 : 2;
    attention += copies * 4 * s.rows * h.query_width() + 4096;
  }
  return round_up(std::max({32 * kMiB, embedding, attention}), 512);
}

}  // namespace shardplan::validator
