// How many sequences fit as long as they may get.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimate/estimate.h"

namespace shardplan {

struct ContextCapacity {
  std::int64_t prompt_length = 0;
  std::int64_t context = 0;           ///< with the new tokens
  std::optional<std::int64_t> batch;  ///< the largest that fits; nullopt: not even one
  std::int64_t cache_bytes = 0;       ///< of that batch when it is full; 0: a workspace's
  double tokens_per_second = 0;       ///< after the prompt, of all sequences; 0: unknown
  bool is_current = false;            ///< the job's own lengths
};

/// For prompts of a quarter of the job's length to four times as long.
std::vector<ContextCapacity> batches_that_fit(const Model& model, const Plan& plan,
                                              const Calibration& calibration);

}  // namespace shardplan
