// Cosines and sines of the rotary embedding, as kernels read them.
#pragma once

#include <vector>

#include "model/spec.h"

namespace shardplan::validator {

/// [rows of a sequence, head_dim]: the cosines of the head_dim/2 frequencies, then their sines.
std::vector<double> rotary_table(const Rotary& rotary, const RowPlaces& places,
                                 std::int64_t head_dim);

}  // namespace shardplan::validator
