// A feed-forward over parts of the sequence, one after the other: each part is a pass of its own
// over the feed-forward's graph, whose allocations and kernels are written into the run around it.
#pragma once

#include "program/tape/parts.h"

namespace shardplan::tape {

/// All parts without autograd, and their results put together. The function keeps its input.
void tiled_forward(Parts& p, const TiledPart& part);

/// Computes each part again, and its gradients: outside of autocast, whatever the forward pass was
/// in.
void tiled_backward(Parts& p, const TiledPart& part);

}  // namespace shardplan::tape
