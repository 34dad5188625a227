// Experts divided over ranks that gather all tokens of their group.
#pragma once

#include <cstdint>

#include "model/graph.h"

namespace shardplan {

/// `graph` with experts as NeMo Automodel's GroupedExperts runs them over `ranks` ranks
/// (components/moe/experts.py): each rank gathers the tokens of all, computes the rows whose
/// experts it has (`imbalance` times as many as its own tokens have), adds them to an fp32 tensor
/// of all tokens, and keeps its part of the sum over the ranks. Gradients are summed over the
/// ranks in the same way.
Graph gather_tokens(const Graph& graph, std::int64_t ranks, double imbalance);

}  // namespace shardplan
