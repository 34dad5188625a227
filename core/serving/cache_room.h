// How many sequences a paged cache holds to their last token: docs/explanation/serving.md.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace shardplan {

struct RolloutEngine;

/// Blocks of an engine's cache that sequences of a workload take: what all prompts share is there
/// once.
class CacheRoom {
 public:
  CacheRoom(const RolloutEngine& engine, const Workload& workload);

  std::int64_t blocks_of(std::int64_t sequences) const;
  /// Prompts and all new tokens of so many sequences have room in `blocks`.
  std::int64_t sequences_in(std::int64_t blocks) const;

 private:
  std::int64_t shared_;  ///< blocks of the prefix that are full
  std::int64_t own_;     ///< of each sequence beside those
};

}  // namespace shardplan
