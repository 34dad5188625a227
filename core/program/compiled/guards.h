// What Dynamo checks before it calls a graph again.
#pragma once

#include <cstdint>

#include "model/model.h"
#include "program/kernel.h"

namespace shardplan::compiled {

/// Linears of a segment, all its iterations, that have peft's adapters beside them: Dynamo guards
/// each of the modules of those (two matrices, a dropout, their dictionaries). Guards of others are
/// within what a pass takes anyway.
inline std::int32_t adapters_of(const Model& model, const Segment& segment) {
  std::int32_t matrices = 0;
  for (const Op& op : segment.graph.ops())
    if (op.kind == OpKind::linear && model.parameters[static_cast<std::size_t>(op.weight)].adapter)
      ++matrices;
  return matrices / 2 * static_cast<std::int32_t>(segment.repeat);
}

/// Those that are checked where a segment's forward pass begins. A frame's guards are checked
/// together, before any of its kernels starts: those of a model in one piece where it begins.
/// `apart`: each iteration of a segment is a frame of its own.
inline std::int32_t guards_before(const Model& model, const Segment& segment, bool apart) {
  if (apart) return adapters_of(model, segment) / static_cast<std::int32_t>(segment.repeat);
  if (&segment != &model.segments.front()) return 0;
  std::int32_t all = 0;
  for (const Segment& s : model.segments) all += adapters_of(model, s);
  return all;
}

inline Kernel guards(std::int32_t count) {
  Kernel kernel;
  kernel.issue = Issue::guard;
  kernel.calls = count;
  return kernel;
}

}  // namespace shardplan::compiled
