// Which flat parameter is used after which in a pass over the model.
#pragma once

#include <vector>

#include "frameworks/fsdp1/flat_units.h"
#include "lowering/segments.h"

namespace shardplan {

/// The repeats of a pass with the last iteration of each block on its own: what is prefetched
/// behind it is another unit, or nothing.
std::vector<SegmentRepeat> with_last_apart(const FlatUnits& units,
                                           const std::vector<SegmentRepeat>& all);

/// The unit that runs after an iteration of repeat `k`; null behind the last block.
const FlatUnit* unit_after(const FlatUnits& units, const std::vector<SegmentRepeat>& repeats,
                           std::size_t k);

/// The first block's of a pass; null where there are no blocks.
const FlatUnit* first_unit(const FlatUnits& units, const std::vector<SegmentRepeat>& repeats);

}  // namespace shardplan
