// Which values of a graph are rows that divided experts take.
#pragma once

#include <vector>

#include "model/graph.h"
#include "parallel/cuts.h"

namespace shardplan {

/// By value: the tokens that divided experts are given, which come from values that all ranks have,
/// and the weights of those tokens where the activation takes them.
std::vector<bool> rows_for_experts(const Graph& graph, const Cuts& cuts);

}  // namespace shardplan
