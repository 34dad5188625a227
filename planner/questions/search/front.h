// The plans that no other found plan beats in time, memory and GPUs at once.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/estimate.h"
#include "questions/search/goal.h"

namespace shardplan {

struct FrontEntry {
  std::int64_t index = 0;  ///< in the space
  Score score;
  Estimate estimate;  ///< with the allocator simulated: it fits
};

class ParetoFront {
 public:
  /// Whether an entry is at least as good as anything with this score, from `index` on, can be.
  bool beats(const Score& score, std::int64_t index) const;
  /// Takes an entry that nothing beats, and drops what it beats.
  void admit(FrontEntry entry);
  const std::vector<FrontEntry>& entries() const { return entries_; }

 private:
  std::vector<FrontEntry> entries_;
};

}  // namespace shardplan
