// The passes over one segment of a network.
#pragma once

#include <vector>

#include "lowering/gradient_flow.h"
#include "lowering/segments.h"
#include "program/compiled/cuts.h"

namespace shardplan {

/// Forward and backward of a segment under a plan, eager or compiled, checkpointed or not. `cuts`:
/// of a compiled segment, the graphs that its layers are in; empty: one graph. `own_tapes`: set
/// where those of layers differ.
SegmentRun run_segment(const Model& model, const Segment& segment, const Plan& plan,
                       const Regime& regime, const Incoming& in,
                       const std::vector<compiled::Cut>& cuts, CheckpointedBlocks& own_tapes);

/// Runs the embeddings again, now that it is known what the block behind them, in the same compiled
/// graph, leaves for the kernel that scatters their gradient. `in`: what they were run with.
void scatter_in_first_block(const Model& model, const Plan& plan, const Regime& regime, Incoming in,
                            const std::vector<compiled::Cut>& cuts, ModelRun& run);

}  // namespace shardplan
