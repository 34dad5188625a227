// Where the operations of a segment are in AOTAutograd's graph, whose nodes are finer.
#pragma once

#include <cstdint>
#include <vector>

#include "program/compiled/trace.h"

namespace shardplan::compiled {

/// By node of the forward pass of `trace`, how many nodes of AOTAutograd's graph are made from the
/// segment's first one to it; `view` is that of the trace. It ends in front of the first operation
/// that was not counted. Counted are decoders whose RMS norms are written out: blocks of ten
/// families were compared (tests/core/program/compiled/aten_order_test.cpp).
std::vector<std::int64_t> aten_order(const tape::GraphView& view, const Trace& trace);

}  // namespace shardplan::compiled
