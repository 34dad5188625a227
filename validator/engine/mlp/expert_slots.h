// How many rows the experts of a layer compute with on one rank: their slots (expert_operands.h).
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "device/fp8.h"
#include "model/spec.h"

namespace shardplan::validator {

/// What an expert's slots and their beginnings are a multiple of: products in fp8 want 16.
constexpr std::int64_t slot_multiple(Fp8Recipe fp8) {
  return fp8 == Fp8Recipe::none ? 1 : 16;
}

struct ExpertSlots {
  std::int64_t rows = 0;      ///< of a micro-batch, that a rank has between the products
  std::int64_t capacity = 0;  ///< of each expert and rank; 0: as many as it is given
  std::int64_t multiple = 1;  ///< that the slots of an expert are

  /// Of all experts here, of all ranks that send rows.
  std::int64_t all(const ExpertsSpec& experts) const {
    if (capacity > 0) return checked_mul(experts.count, capacity);
    const std::int64_t given = checked_mul(rows, experts.per_token);
    return round_up(given + experts.count * (multiple - 1), multiple);
  }
  /// The most that one of them may have: a row goes to an expert once.
  std::int64_t most(const ExpertShare& share) const {
    return capacity > 0 ? checked_mul(capacity, share.ranks) : round_up(rows, multiple);
  }
};

}  // namespace shardplan::validator
