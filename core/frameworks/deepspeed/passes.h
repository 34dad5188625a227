// Forward and backward passes after which every gradient is alive: those of ZeRO stages 0 and 1.
#pragma once

#include <vector>

#include "frameworks/deepspeed/stages.h"
#include "lowering/gradient_uses.h"
#include "lowering/micro_batches.h"
#include "lowering/pipeline/schedule.h"
#include "lowering/tensors.h"

namespace shardplan {

/// Gradients stay where autograd made them until the boundary.
struct KeptGradients {
  GradientUses uses;
  bool at_once = false;       ///< gradients_at_once: all are there before one is added to another
  bool accumulating = false;  ///< an earlier micro-batch left its gradients
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    uses.arrive(b, id, bytes, accumulating && !at_once);
  }
  void added(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.added(b, id, bytes); }
  /// The backward pass is over; `bytes`: of all gradients.
  void end_pass(ProgramBuilder& b, std::int64_t bytes) {
    if (at_once && accumulating) b.free(Category::gradients, bytes);
    accumulating = true;
  }
};

/// The pipeline engine's passes over a stage (deepspeed/runtime/pipe/engine.py). A micro-batch's
/// input is cloned twice, once out of the buffer that receives and once for the stage's forward;
/// its output stays in the pipe buffers until the backward pass.
template <typename AtBoundary>
void emit_stage_passes(ProgramBuilder& b, const Model& model, const Plan& plan, const ModelRun& run,
                       const Stage& stage, AtBoundary&& at_boundary) {
  const StageChunk& chunk = stage.chunks.front();
  KeptGradients hooks{{model, run, chunk.repeats}};
  const std::int64_t clone = input_bytes(run, chunk);
  emit_schedule(
      b, stage_schedule(plan, stage.index), {},
      [&](std::int64_t) {
        b.alloc(Category::communication_buffers, clone);
        emit_chunk_forward(b, model, run, plan, chunk, SentOutput::kept, hooks);
      },
      [&](std::int64_t, bool last) {
        emit_chunk_backward(b, model, run, plan, chunk, SentOutput::kept, hooks);
        hooks.accumulating = true;
        b.free(Category::communication_buffers, clone);
        if (last) at_boundary();
      });
}

/// Forward and backward of all micro-batches; afterwards all gradients are alive. `each`: what is
/// done with the gradients of every micro-batch.
template <typename Each, typename AtBoundary>
void emit_passes(ProgramBuilder& b, const Model& model, const Plan& plan, const ModelRun& run,
                 const Engine& engine, Each&& each, AtBoundary&& at_boundary) {
  if (engine.stage != nullptr) {
    emit_stage_passes(b, model, plan, run, *engine.stage, [&] {
      each();
      at_boundary();
    });
    return;
  }
  const std::vector<SegmentRepeat> forward = whole_segments(run);
  KeptGradients hooks{{model, run, forward}, gradients_at_once(model, plan)};
  const std::vector<SegmentRepeat> backward(forward.rbegin(), forward.rend());
  const std::int64_t gradients =
      trainable_bytes(model, plan.precision.params, plan.precision.params);
  emit_micro_batches(b, plan.workload.gradient_accumulation, [&](bool last) {
    b.begin_phase(Phase::forward);
    emit_forward(b, model, run, forward, hooks);
    b.end_phase(Phase::forward);
    b.begin_phase(Phase::backward);
    emit_backward(b, model, run, backward, hooks);
    hooks.end_pass(b, gradients);
    if (run.segments.empty() && last) b.alloc(Category::gradients, engine.b * engine.trainable);
    each();
    if (last) at_boundary();
    b.end_phase(Phase::backward);
  });
}

}  // namespace shardplan
