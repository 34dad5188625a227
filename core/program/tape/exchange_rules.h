// What the operations around an exchange among ranks make of it: what is sent, and which products
// may hide it. Facts of a graph; nothing is written down.
#pragma once

#include "program/tape/graph_view.h"

namespace shardplan::tape {

/// DTensor's layouts around a linear: a new tensor in one direction, nothing in the other. The host
/// is busy with them as long as with FSDP2's hooks around a module: wrapping and redistributing
/// forward; backward that, and the dispatch of both products.
bool is_redistribution(const Communication& c);

/// Bytes of all ranks together: the larger of what goes in and what comes out.
std::int64_t payload_of(const GraphView& view, const Op& op, DType type);

/// Index of the last operation that multiplies `value`; kNone where others read it too.
std::int32_t last_linear_of(const Graph& graph, ValueId value);
/// The operation that made `value`; nullptr for an input.
const Op* maker_of(const Graph& graph, ValueId value);
/// The operation after `op`, a linear cut by rows, adds up the ranks' parts of its result.
bool is_scattered_next(const Graph& graph, const Op& op);
/// The gradient of what `op`, a linear cut by columns, reads is added up among ranks.
bool is_gradient_reduced(const Graph& graph, const Op& op);
/// The first operation that keeps `value` in place of its input (Op::kept).
const Op* first_keeper_of(const Graph& graph, ValueId value);

}  // namespace shardplan::tape
