// The space cut into groups, each all candidates below a choice of the axes that decide states,
// activations and computation; bounded, and those that cannot fit ruled out.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "questions/search/bounds.h"
#include "questions/search/models.h"
#include "questions/search/search.h"
#include "questions/search/tally.h"

namespace shardplan {

/// What a search is given.
struct SearchInput {
  const ModelVariants& models;
  const SearchSpace& space;
  const Goal& goal;
  const Calibration& calibration;
  const SearchControl& control;

  bool stopped() const { return control.stop != nullptr && control.stop->load(); }
  /// Bytes that the GPU lacks at least when live tensors peak at `allocated`.
  std::int64_t lacking(const Plan& plan, std::int64_t allocated) const;
};

/// The candidate, or subtree, that lacks the fewest bytes, of any memory.
struct Closest {
  std::int64_t excess = 0;
  std::int64_t index = -1;
  std::size_t depth = 0;  ///< so many axes are decided

  void offer(const Closest& other) {
    if (other.index < 0) return;
    if (index < 0 || std::pair(other.excess, other.index) < std::pair(excess, index)) *this = other;
  }
};

struct CandidateGroup {
  std::int64_t first = 0;   ///< candidate: the axes behind are at value 0
  std::int32_t passes = 0;  ///< the same for groups that share passes
  Score score;              ///< at best
};

/// Groups that may have a plan that fits. What is ruled out is counted in `tally`. Throws what the
/// framework says where it refuses every plan.
std::vector<CandidateGroup> find_groups(const SearchInput& input, Tally& tally, Closest& closest);

/// The numbers [0, passes.size()) in batches of equal `passes`, of a size that threads can share.
std::vector<std::vector<std::size_t>> batches_of(const std::vector<std::int32_t>& passes);

}  // namespace shardplan
