// What Inductor allocates while it compiles, to time products with and without longer rows.
#pragma once

#include <vector>

#include "program/compiled/padding.h"
#include "program/tape.h"

namespace shardplan::compiled {

/// A linear whose products are timed both ways.
struct TimedProduct {
  ProductSize size;
  std::int64_t padded = 0;  ///< columns that it has then
  DType type = DType::bf16;
  bool input_grad = false, weight_grad = false;
};

/// The allocations and frees of all of them, as the passes over a joint graph find its products:
/// the last one first.
std::vector<TapeEvent> trial_events(const std::vector<TimedProduct>& products);

}  // namespace shardplan::compiled
