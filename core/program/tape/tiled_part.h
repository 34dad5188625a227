// The operations of a graph that run over parts of the sequence (TapeOptions::tiles), and the same
// as a graph of their own.
#pragma once

#include <cstddef>
#include <vector>

#include "model/model.h"
#include "program/tape.h"

namespace shardplan::tape {

struct TiledPart {
  std::size_t begin = 0, end = 0;  ///< its operations, in the graph
  ValueId in = kNone;              ///< the only value that they read from outside
  Segment whole;                   ///< over rows that lie behind each other
  /// Over a part of each of several samples: a linear copies such rows before it multiplies them.
  Segment apart;
};

/// The feed-forwards of `graph`; none where `tiles` leave it as it is.
std::vector<TiledPart> tiled_parts(const Graph& graph, const MlpTiles& tiles);

/// The one whose operations end before `end`; null: there is none.
const TiledPart* tiled_part_ending(const std::vector<TiledPart>& tiles, std::size_t end);

}  // namespace shardplan::tape
