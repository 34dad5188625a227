// Which buffers wait for later tensors of their size, and which tensors take them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/compiled/units.h"

namespace shardplan::compiled {

/// A buffer that its own tensor has left.
struct LeftBuffer {
  NodeId by = kNone;
  bool before = false;  ///< in the pass before, one of the same
  auto operator<=>(const LeftBuffer&) const = default;
};

/// Of a pass, as the wrapper that Inductor writes plans it (torch/_inductor/codegen/wrapper.py,
/// memory_plan_reuse).
struct BufferPlan {
  std::vector<LeftBuffer> takes;    ///< by node: the buffer that it gets; of none: a new one
  std::vector<bool> waits;          ///< by node: a later tensor takes its buffer
  std::vector<LeftBuffer> carried;  ///< those of the pass before, which are there all the time
};

/// What a plan is made of.
struct PlannedPass {
  const JointGraph& graph;
  const Pass& pass;
  const std::vector<Unit>& units;
  const std::vector<std::size_t>& last;  ///< by node, the last unit that uses it
  std::vector<bool> stored;              ///< by node: it has a storage when the pass begins
  /// The pass behind is one of the same, which takes what this one leaves.
  bool again = false;
  /// Bytes above what the pass begins with that Inductor expects elsewhere in its graph.
  std::int64_t room = 0;
  /// What a result is written over, of what ends with its unit; kNone: nothing.
  std::function<NodeId(const Unit&, const Made&, const std::vector<NodeId>& dying)> over;
};

BufferPlan plan_buffers(const PlannedPass& planned);

}  // namespace shardplan::compiled
