// What Megatron-LM's schedules hold of what stages send each other, longer than passes need it.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/pipeline/stages.h"
#include "lowering/segments.h"
#include "program/program.h"

namespace shardplan {

/// megatron/core/pipeline_parallel/schedules.py. A chunk's decoder has its last input until the
/// next one is set, in the next step; the input has its gradient. Without chunks the variables of
/// the schedule keep more: an input goes with its graph when the next output is there, its gradient
/// when the next backward pass has run, and the gradient of an output when the next one came.
class ReceivedTensors {
 public:
  ReceivedTensors(const ModelRun& run, const Stage& stage);

  // In the order of a micro-batch: what the pass reads is received between begins() and enter().
  void forward_begins(std::int64_t chunk);
  void enter(ProgramBuilder& b);
  void forward_ends(ProgramBuilder& b);
  void backward_begins(ProgramBuilder& b);
  /// The gradient of an input was sent. False: nobody keeps it.
  bool keeps_gradient(ProgramBuilder& b);
  void backward_ends(ProgramBuilder& b);
  /// After the last one. What the decoders keep is resident.
  void step_ends(ProgramBuilder& b);

 private:
  struct Chunk {
    std::int64_t input = 0, output = 0;  ///< bytes that come from other stages
    bool began = false;                  ///< its first pass of the step did
  };

  void drop_input(ProgramBuilder& b);

  std::vector<Chunk> chunks_;
  std::vector<Event> leaves_;  ///< when the next pass has received what it reads
  bool holds_input_ = false, holds_gradient_ = false, holds_output_gradient_ = false;
};

}  // namespace shardplan
