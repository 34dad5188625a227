// Where Dynamo cuts the graph of a model under DistributedDataParallel, so that gradients can be
// exchanged while others are computed.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "program/tape.h"

namespace shardplan::compiled {

/// How a segment is cut: by operation, the graph of the segment that it is in, from 0 on.
struct Cut {
  std::vector<std::int32_t> parts;
  std::int64_t count = 0;  ///< of the segment's repetitions
};

struct GraphCuts {
  std::vector<std::vector<Cut>> segments;  ///< by segment; nothing: Dynamo cuts no graphs
  /// Graphs of the whole model that attend to all tokens before, and with a sliding window: each
  /// makes a mask of its own.
  std::int64_t causal = 1, sliding = 1;
};

/// Which cuts stand for all repetitions of a segment.
struct CutChoice {
  std::size_t own = 0;     ///< of those that keep at least the mean, the one that keeps least
  std::size_t others = 0;  ///< of those that keep less, the one that keeps most; or `own`
  std::int64_t count = 0;  ///< repetitions with `own`: together they keep what all do, or more
};

/// `kept`: by cut, bytes that its forward pass keeps. `cuts` is not empty.
CutChoice choose(const std::vector<Cut>& cuts, const std::vector<std::int64_t>& kept);

/// `graph_bytes`: a graph ends where its parameters that need a gradient take as many, the last one
/// at 1 MiB (torch/_dynamo/backends/distributed.py, DDPOptimizer); 0: there are no cuts.
/// `whole_blocks`: checkpointed blocks are one operation each, and share a mask.
GraphCuts graph_cuts(const Model& model, const Regime& regime, std::int64_t graph_bytes,
                     bool whole_blocks);

/// `parts`, the graphs between breaks within a segment (compiled/breaks.h), cut at buckets too:
/// each is a graph of its own to DDPOptimizer, whose last bucket ends at 1 MiB. What is in front of
/// the first parameter stays with it. Counted from 1 on.
std::vector<std::int32_t> cut_between_breaks(const Model& model, const Regime& regime,
                                             const Graph& graph,
                                             const std::vector<std::int32_t>& parts,
                                             std::int64_t graph_bytes);

/// Whether these parts are such: the graphs of Liger's loss, behind the last of them, are cut too.
bool is_cut(const std::vector<std::int32_t>& parts);

/// By operation of a segment, the graph that it is in; empty: all are in one.
inline std::vector<std::int32_t> parts_of(const TapeOptions& options) {
  return options.graph_parts == nullptr ? std::vector<std::int32_t>{} : *options.graph_parts;
}

}  // namespace shardplan::compiled
