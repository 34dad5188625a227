// CUDA graphs of an engine: one for each of many sizes of a pass, made when it starts.
#pragma once

#include <cstdint>

#include "model/model.h"
#include "rollout/engine.h"

namespace shardplan {

/// Of one GPU, beside the engine's share: what the driver keeps of each graph, and the memory that
/// all of them share.
std::int64_t graph_bytes(const RolloutEngine& engine, const Model& generator, const Gpu& gpu);

/// Tokens of the largest pass whose layers graphs start between attention.
std::int64_t most_in_cut_graph(const RolloutEngine& engine);

/// Sequences of the largest graph that starts a whole pass.
std::int64_t most_in_graph(const RolloutEngine& engine);

}  // namespace shardplan
