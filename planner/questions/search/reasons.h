// Why a found plan is as it is: what each single other choice would have done.
#pragma once

#include <cstddef>
#include <vector>

#include "questions/search/search.h"

namespace shardplan {

/// The found plan with one axis at a neighbouring value.
struct OtherChoice {
  std::size_t axis = 0, value = 0;
  Estimate estimate;           ///< with the allocator simulated
  double slowdown = 0;         ///< time for a token over the found plan's; 0: unknown
  std::int64_t gpu_added = 0;  ///< device bytes beyond the found plan's; point estimates
};

/// For every axis the values before and behind, where they are allowed and make a difference: a
/// per cent of time or memory, or the verdict.
std::vector<OtherChoice> other_choices(const ModelVariants& models, const SearchSpace& space,
                                       const Found& found, const Calibration& calibration);

}  // namespace shardplan
