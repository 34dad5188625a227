// First values of the parameters that lie in a rank's memory.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/element_range.h"
#include "engine/weights.h"

namespace shardplan::validator {

/// Random by each parameter's Init, the same for every division among ranks. `room`: for the
/// largest matrix that is kept in 4 bits (Network::widened).
void initialise(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                Weights& weights, std::uint32_t seed, const Tensor& room);
/// Of one unit of elements, without Weights::keep().
void initialise_unit(Runtime& runtime, const Unit& unit, const Sharding& sharding,
                     const Tensor& resident, std::uint32_t seed);

/// The range of a unit's elements that Weights::resident() holds.
ElementRange resident_range(const Unit& unit, const Sharding& sharding);

/// Writes the values of a matrix, of which this rank may have a part, to its place in `room`.
using FillMatrix = std::function<void(const ParameterSpec&, const Tensor& place)>;
/// Of a unit of matrices that are kept in 4 bits, without Weights::keep(): one after the other is
/// filled and rounded by the device, all of it at stage 3 too, as what one scale is of may be on
/// several ranks.
void quantize_unit(Runtime& runtime, const Unit& unit, const Sharding& sharding,
                   const Weights& weights, int index, const Tensor& room, const FillMatrix& fill);

}  // namespace shardplan::validator
