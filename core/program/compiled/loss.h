// What Liger's fused loss needs while it runs in graphs that Dynamo makes of it.
#pragma once

#include <functional>

#include "program/compiled/trace.h"
#include "program/compiled/units.h"
#include "program/tape/graph_view.h"
#include "program/tape/storages.h"

namespace shardplan::compiled {

/// The operation of a loss that is fused with the head, of whose call `unit` is the result; null:
/// it is something else.
const Op* fused_loss(const tape::GraphView& view, const Trace& trace, const Unit& unit);

/// Allocates and frees what lives beside the loss and both gradients. Dynamo traces the loop over
/// chunks of tokens into one graph, where each product has a result of its own: the logits of all
/// chunks are there before the first product adds to the weight's gradient, as Inductor moves each
/// of these products next to the one that reads it (PyTorch 2.11,
/// torch/_inductor/fx_passes/post_grad.py, reorder_for_locality), and two tables beside the one
/// that is returned take turns. A head that is frozen has no such products: the chunks' logits take
/// turns, as in an eager step. So they do where the graph is `cut` at buckets, each product by a
/// weight that trains apart from the next one. Seen in its wrappers.
/// `time`: called with the number of each chunk, whose kernel is one of its own.
void allocate_loss(const tape::GraphView& view, const Op& op, bool cut, tape::Storages& storages,
                   const std::function<void(std::int64_t)>& time);

}  // namespace shardplan::compiled
