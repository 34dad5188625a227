// What Dynamo checks before it calls a graph again.
#pragma once

#include <cstdint>

#include "program/tape/graph_view.h"
#include "program/tape/kernel_list.h"

namespace shardplan::compiled {

/// The host's work for the modules that peft puts beside linears (two matrices, a dropout, their
/// dictionaries): Dynamo guards each of them. Of the others it is within what a pass takes anyway.
inline tape::KernelList guards_of_adapters(const tape::GraphView& view) {
  std::int32_t matrices = 0;
  for (const Op& op : view.graph().ops())
    if (op.kind == OpKind::linear && view.parameter(op.weight).adapter) ++matrices;
  tape::KernelList list;
  Kernel guards;
  guards.issue = Issue::guard;
  guards.calls = matrices / 2;
  if (guards.calls > 0) list.add(guards);
  return list;
}

}  // namespace shardplan::compiled
