// What a stage of a pipeline does in a step, as data: passes of micro-batches through its chunks of
// layers, and what is sent and received between them.
//
// GPipe (arXiv 1811.06965), 1F1B (PipeDream-Flush, arXiv 2006.09503) and 1F1B with several chunks a
// stage (arXiv 2104.04473). A run without stages is the pipeline of one: forward, backward, and
// nothing to send.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/parallel.h"

namespace shardplan::validator {

struct Pipeline {
  int stages = 1;
  int chunks = 1;  ///< of each stage; chunk c of stage s is the (c · stages + s)-th of the network
  PipelineSchedule order = PipelineSchedule::one_f_one_b;

  /// Whether a chunk of a stage is the network's first, or its last.
  bool begins(int stage, int chunk) const { return stage == 0 && chunk == 0; }
  bool ends(int stage, int chunk) const { return stage == stages - 1 && chunk == chunks - 1; }
};

struct Pass {
  enum class Kind : std::uint8_t { forward, backward };
  Kind kind = Kind::forward;
  int chunk = 0;  ///< of the stage's
  std::int64_t micro_batch = 0;
  int slot = 0;  ///< where what the micro-batch keeps is, from its forward pass to its backward
  friend bool operator==(const Pass&, const Pass&) = default;
};

/// The activations or the gradient that a pass is given by another stage, or gives to one.
struct Message {
  int peer = 0;  ///< the other stage
  Pass pass;     ///< of this stage
};

/// Messages that are exchanged at the same time, and the passes that follow.
struct Turn {
  std::vector<Message> out, in;
  std::vector<Pass> passes;
};

/// A step of `micro_batches` on a stage; the last turn may have messages alone. Interleaved
/// schedules need a multiple of the stages.
std::vector<Turn> schedule_of(const Pipeline& pipeline, int stage, std::int64_t micro_batches);

/// Slots that its passes use.
int slots_of(const std::vector<Turn>& turns);

}  // namespace shardplan::validator
