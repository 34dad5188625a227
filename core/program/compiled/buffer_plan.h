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
  std::size_t before = 0;  ///< so many passes before, which are the same
  auto operator<=>(const LeftBuffer&) const = default;
};

/// Of a pass, as the wrapper that Inductor writes plans it (torch/_inductor/codegen/wrapper.py,
/// memory_plan_reuse).
struct BufferPlan {
  std::vector<LeftBuffer> takes;    ///< by node: the buffer that it gets; of none: a new one
  std::vector<bool> waits;          ///< by node: a later tensor takes its buffer
  std::vector<LeftBuffer> carried;  ///< those of the pass before, which are there all the time
};

/// Passes of which the middle one lies between two of the same.
inline constexpr std::int64_t kBetweenTwo = 3;

/// What a plan is made of.
struct PlannedPass {
  const JointGraph& graph;
  const Pass& pass;
  const std::vector<Unit>& units;
  const std::vector<std::size_t>& last;  ///< by node, the last unit that uses it
  std::vector<bool> stored;              ///< by node: it has a storage when the pass begins
  /// Of the same in a row, each of which takes what the one before has left.
  std::int64_t passes = 1;
  /// Nothing lies between them: the next one begins without what each ends, such as its input, less
  /// what it leaves, such as gradients.
  bool in_row = false;
  /// Bytes above what the pass begins with that Inductor expects elsewhere in its graph.
  std::int64_t room = 0;
  /// What a result is written over, of what ends with its unit; kNone: nothing.
  std::function<NodeId(const Unit&, const Made&, const std::vector<NodeId>& dying)> over;
};

/// Of several passes what waits differs from one to the next, as the level does that they begin
/// with. Of one of them, behind the first, whose plan for all comes nearest to the highest peak of
/// all, and not below.
BufferPlan plan_buffers(const PlannedPass& planned);

}  // namespace shardplan::compiled
