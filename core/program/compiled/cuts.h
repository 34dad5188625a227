// Where Dynamo cuts the graph of a model under DistributedDataParallel, so that gradients can be
// exchanged while others are computed.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "program/tape.h"

namespace shardplan::compiled {

struct GraphCuts {
  /// By segment and by operation, the graph of the segment that it is in, from 0 on; empty for a
  /// segment in one piece. Of a repeated segment, what is true of most of its repetitions.
  std::vector<std::vector<std::int32_t>> parts;
  /// Graphs of the whole model that attend to all tokens before, and with a sliding window: each
  /// makes a mask of its own.
  std::int64_t causal = 1, sliding = 1;
};

/// `graph_bytes`: a graph ends where its parameters that need a gradient take as many, the last one
/// at 1 MiB (torch/_dynamo/backends/distributed.py, DDPOptimizer); 0: there are no cuts.
/// `whole_blocks`: checkpointed blocks are one operation each.
GraphCuts graph_cuts(const Model& model, const Regime& regime, std::int64_t graph_bytes,
                     bool whole_blocks);

}  // namespace shardplan::compiled
