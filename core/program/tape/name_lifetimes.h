// When Python's names for values die: after their last use, or when a hold on them ends.
#pragma once

#include <cstdint>
#include <vector>

#include "model/graph.h"
#include "program/tape.h"

namespace shardplan::tape {

struct NameEnd {
  std::int32_t after = 0;  ///< index of the operation that has run
  ValueId value = kNone;
  friend auto operator<=>(const NameEnd&, const NameEnd&) = default;
};

/// Ascending. Without the graph's output, the names that the model's forward holds, and inputs,
/// save for a chained one that the caller lets go.
std::vector<NameEnd> name_ends(const Graph& graph, TapeMode mode);

}  // namespace shardplan::tape
