// PyTorch FSDP2: fully_shard on every block and on the root, with a mixed-precision policy
// (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py).
#include "frameworks/fsdp2/lower.h"

#include <algorithm>

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
  const std::vector<SegmentRepeat> forward = forward_repeats(f, whole_segments(f.run));
  Fsdp2Forward ahead{f, forward};
  b.begin_phase(Phase::forward);
  ahead.start(b);
  emit_forward(b, f.model, f.run, forward, ahead);
  ahead.stop(b);
  b.end_phase(Phase::forward);

  const std::vector<SegmentRepeat> backward = backward_repeats(f, whole_segments(f.run));
  Fsdp2Backward back(f, backward, turn);
  b.begin_phase(Phase::backward);
  back.start(b);
  emit_backward(b, f.model, f.run, backward, back);
  back.stop(b);
  if (turn.reduces) back.finish_reductions(b);
  b.end_phase(Phase::backward);
}

/// Of published runs of divided networks (docs/explanation/parallelism.md) the furthest above its
/// prediction: Llama 3.1 70B over 8 tensor-parallel GPUs, 71.9 GiB where 61.6 are predicted.
constexpr double kMostOverDivided = 1.17;

/// Where a tower stands beside a divided text model, and how the families are divided that no other
/// framework divides, was read in NeMo Automodel's source; no run confirms what they take.
double most_over(const Model& model, const Plan& plan) {
  const Parallel& p = plan.parallel;
  const bool divided = p.tensor > 1 || p.context > 1 || p.pipeline > 1;
  const bool read = model.facts.image.tokens > 0 || model.facts.undivided;
  return divided && read ? kMostOverDivided : 1;
}

Program lower_whole(const Model& whole, const Plan& plan, const ModelRun& run) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const PackedWeights packed(whole, plan.precision.compute);
  const Model& model = packed.model();
  const Fsdp2 f(model, plan, run);
  const Fsdp2States states = fsdp2_states(model, plan, f.units);
  add_fsdp2_states(program, b, plan, run, states, packed);
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

}  // namespace

Program lower_fsdp2(const Model& whole, const Plan& plan, const ModelRun& run, std::int64_t rank) {
  Program program = plan.parallel.pipeline > 1 ? lower_fsdp2_stage(whole, plan, run, rank)
                                               : lower_whole(whole, plan, run);
  program.most_over =
      std::max(most_over(whole, plan), most_over_packed(whole, plan.framework.fsdp2.cpu_offload));
  return program;
}

}  // namespace shardplan
