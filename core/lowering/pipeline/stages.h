// Which part of a network each pipeline stage runs.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/segments.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Consecutive segments of the network that a stage runs at once, in the order of the network.
struct StageChunk {
  std::vector<SegmentRepeat> repeats;
  bool first = false;  ///< of the network: nothing comes from another stage
  bool last = false;   ///< it ends with the loss
};

/// Stage 0 takes chunks 0, p, 2p, ...; stage k those k further, or as far from the end
/// (Parallel::stage_of_chunk).
struct Stage {
  std::int64_t index = 0;
  std::vector<StageChunk> chunks;
};

/// Blocks of each chunk in the order of the network: pipeline · virtual_pipeline of them. Where
/// they do not come out even, the first chunks have one more.
std::vector<std::int64_t> blocks_of_chunks(const Model& model, const Parallel& parallel);
/// Blocks of the stage that has the fewest.
std::int64_t fewest_blocks(const Model& model, const Parallel& parallel);

Stage stage_of(const Model& model, const Parallel& parallel, std::int64_t index);
/// Stages are the slowest of a rank's degrees.
Stage stage_of_rank(const Model& model, const Plan& plan, std::int64_t rank);

/// The stages of which one has the most, in memory or in time: the first and the last, and of
/// those between the first with each number of blocks, which holds most micro-batches.
std::vector<std::int64_t> distinct_stages(const Model& model, const Parallel& parallel);

/// The model with the parameters of one stage only, without its graphs. A tied embedding is on both
/// of its stages.
Model parameters_of(const Model& model, const Stage& stage);

}  // namespace shardplan
