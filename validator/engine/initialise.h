// First values of the parameters that lie in a rank's memory.
#pragma once

#include <cstdint>

#include "engine/element_range.h"
#include "engine/weights.h"

namespace shardplan::validator {

/// Random by each parameter's Init, the same for every division among ranks.
void initialise(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                Weights& weights, std::uint32_t seed);

/// The range of a unit's elements that Weights::resident() holds.
ElementRange resident_range(const Unit& unit, const Sharding& sharding);

}  // namespace shardplan::validator
