// The matrix products of a network as an engine starts them.
#pragma once

#include <vector>

#include "lowering/segments.h"
#include "plan/plan.h"

namespace shardplan {

struct RolloutEngine;

/// The plan of one GPU of the engine: its share of the layers, in one process.
Plan engine_share(const Plan& plan, const RolloutEngine& engine);

/// Of one layer of a segment. Linears that read the same tensor are one product. The tape starts a
/// product for each linear, in their order; where it starts others too, nothing is packed.
struct PackedProducts {
  std::vector<Kernel> kernels;
  std::vector<double> before;  ///< as many: kernels between each and the product before it
  double repeat = 1;
  bool in_blocks = false;  ///< their weights are in the plan's format
  bool paired = false;     ///< each product is a linear of the graph
};

/// A rank of several has a node in front of each of its linears, so that none read the same tensor.
/// `through` looks behind them, as an engine does; times are of products apart there.
PackedProducts packed_products(const SegmentRun& segment, bool through = false);

}  // namespace shardplan
