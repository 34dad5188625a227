// Shape rules that several optimizers share.
#pragma once

#include "base/checked.h"
#include "optimizers/description.h"

namespace shardplan {

/// bitsandbytes and torchao leave smaller tensors as they are (min_8bit_size; torchao
/// optim/adam.py).
inline constexpr std::int64_t kLeastQuantized = 4096;

/// A fused kernel of PyTorch reads the count of steps on the GPU: a scalar for each tensor, which
/// flat buffers' optimizers keep as a number.
inline std::int64_t fused_step(const Updated& t, const Optimizer& o) {
  const bool counts = o.implementation == OptimizerImplementation::fused && t.given != Given::flat;
  return counts ? 1 : 0;
}

inline std::int64_t one_scalar(const Updated& t, const Optimizer&) {
  return t.given == Given::flat ? 0 : 1;
}

inline std::int64_t all_elements(const Updated& t, const Optimizer&) {
  return t.numel;
}

}  // namespace shardplan
