// First values of the parameters that lie in a rank's memory.
#pragma once

#include <cstdint>
#include <span>

#include "engine/element_range.h"
#include "engine/weights.h"

namespace shardplan::validator {

/// Random by each parameter's Init, the same for every division among ranks. `room`: for the
/// largest matrix that is kept in 4 bits (Network::widened).
void initialise(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                Weights& weights, std::uint32_t seed, const Tensor& room);
/// Of one unit, without Weights::keep().
void initialise_unit(Runtime& runtime, const Unit& unit, const Sharding& sharding,
                     const Tensor& resident, std::uint32_t seed, const Tensor& room);

/// The range of a unit's elements that Weights::resident() holds.
ElementRange resident_range(const Unit& unit, const Sharding& sharding);

/// `values` in 4 bits, as far as they are of the range that `resident` holds.
void store_quantized(Backend& device, const Unit& unit, const QuantizedMatrix& matrix,
                     std::span<const float> values, const Tensor& resident,
                     const ElementRange& range);

}  // namespace shardplan::validator
