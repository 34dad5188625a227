// PyTorch FSDP2: fully_shard on every block and on the root, with a mixed-precision policy
// (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py).
#include "frameworks/fsdp2/lower.h"

#include "frameworks/fsdp2/backward.h"
#include "frameworks/fsdp2/gathers.h"
#include "frameworks/fsdp2/stage.h"
#include "frameworks/fsdp2/states.h"
#include "lowering/micro_batches.h"
#include "lowering/packed_weights.h"

namespace shardplan {
namespace {

using Unit = Fsdp2Unit;

void emit_micro_batch(ProgramBuilder& b, const Fsdp2& f, const Turn& turn) {
  const std::vector<SegmentRepeat> forward = whole_segments(f.run);
  Fsdp2Forward ahead{f, forward};
  b.begin_phase(Phase::forward);
  ahead.start(b);
  emit_forward(b, f.model, f.run, forward, ahead);
  ahead.stop(b);
  b.end_phase(Phase::forward);

  const std::vector<SegmentRepeat> backward = backward_repeats(f, forward);
  Fsdp2Backward back(f, backward, turn);
  b.begin_phase(Phase::backward);
  back.start(b);
  emit_backward(b, f.model, f.run, backward, back);
  back.stop(b);
  if (turn.reduces) back.finish_reductions(b);
  b.end_phase(Phase::backward);
}

}  // namespace

Program lower_fsdp2(const Model& whole, const Plan& plan, const ModelRun& run, std::int64_t rank) {
  if (plan.parallel.pipeline > 1) return lower_fsdp2_stage(whole, plan, run, rank);
  Program program = program_of(run);
  ProgramBuilder b(program);
  const PackedWeights packed(whole, plan.precision.compute);
  const Model& model = packed.model();
  const Fsdp2 f(model, plan, run);
  const Fsdp2States states = fsdp2_states(model, plan, f.units);
  add_fsdp2_states(program, b, plan, states, packed);
  bool first = true;
  const bool each = plan.syncs_each_batch();
  emit_micro_batches(b, plan.workload.gradient_accumulation, [&](bool last) {
    emit_micro_batch(b, f, {each || last, !each || first, !each && !first});
    first = false;
  });
  emit_fsdp2_step(b, model, plan, states,
                  f.of_all([&](const Unit& g) { return f.gradient_bytes(g); }));
  return program;
}

}  // namespace shardplan
