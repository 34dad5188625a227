// The best plans of a space: pruned by bounds, estimated in bulk, confirmed with the allocator
// simulated. docs/explanation/search.md says how, and why nothing better can be missed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "questions/fixes.h"
#include "questions/search/goal.h"
#include "questions/search/models.h"
#include "questions/search/space.h"

namespace shardplan {

struct RuleCount {
  std::string sentence;  ///< "parameters alone exceed the GPU"
  std::int64_t count = 0;
};

struct Found {
  std::int64_t index = 0;  ///< in the space
  Choice choice;
  Plan plan;
  Estimate estimate;
};

/// When nothing fits: the plan that comes closest to the GPU's memory, and what would help it.
struct NearMiss {
  Found plan;
  std::vector<Fix> fixes;
  std::optional<std::int64_t> enough_gpus;
};

struct SearchResult {
  std::int64_t candidates = 0;
  std::vector<RuleCount> ruled_out;  ///< with `front` they add up to `candidates`
  std::int64_t estimated = 0;        ///< in full
  std::int64_t simulated = 0;        ///< again with the allocator
  std::vector<Found> front;          ///< what the objective likes best comes first
  std::optional<NearMiss> near_miss;
  std::optional<Found> beyond_limits;  ///< the best plan without limits of time and cost
  bool interrupted = false;
};

struct SearchProgress {
  std::int64_t settled = 0, candidates = 0;
  std::size_t on_front = 0;
};

struct SearchControl {
  unsigned threads = 0;  ///< 0: as many as the machine has; no answer depends on it
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const SearchProgress&)> progress;
};

/// Throws InputError when rules that need no estimate leave nothing to look at, naming what they
/// set against each other.
SearchResult search(const ModelVariants& models, const SearchSpace& space, const Goal& goal,
                    const Calibration& calibration, const SearchControl& control = {});

}  // namespace shardplan
