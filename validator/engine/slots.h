// Buffers that units take turns in: gathered parameters at stage 3, whole gradients at stages 2
// and 3.
//
// Blocks, and their experts, matrices of 4 bits and adapters, alternate between two slots, so that
// one is gathered or reduced while the other is computed with. Embedding and head have one of their
// own; they share it unless the head needs the embedding's tokens beside its own norm (tied).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/runtime.h"

namespace shardplan::validator {

struct Slot {
  std::string name;
  std::int64_t numel = 0;  ///< of the largest of its units, padded
  bool bytes = false;      ///< of matrices of 4 bits; elements otherwise
};

struct SlotMap {
  std::vector<Slot> slots;
  std::vector<int> of_unit;
};

enum class SlotsOf : std::uint8_t { parameters, gradients };

/// What is frozen has no slot for its gradient: -1.
SlotMap map_slots(const std::vector<Unit>& units, const Sharding& sharding, bool tied, SlotsOf of);

}  // namespace shardplan::validator
