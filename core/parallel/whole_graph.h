// Segments that every tensor-parallel rank runs whole, beside ranks that divide tokens.
#pragma once

#include <cstdint>

#include "parallel/rewrite.h"

namespace shardplan {

/// A rank's own of `all`, a value of the new graph with all tokens; in the backward pass the ranks'
/// gradients are put together.
ValueId own_tokens(GraphRewrite& w, ValueId all, Extent whole, std::int64_t ranks);

/// The graph as it is, behind which each of `ranks` takes its own tokens of the output; 1: all.
Graph whole_graph(const Graph& graph, std::int64_t ranks);

}  // namespace shardplan
