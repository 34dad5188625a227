#include "frameworks/megatron/frozen.h"

#include <vector>

#include "lowering/pipeline/schedule.h"
#include "lowering/tensors.h"

namespace shardplan {

namespace {

/// Of what layers share (tables of positions, masks) each stage has its own.
void emit_chunk(ProgramBuilder& b, const KeptWeightsPass& pass, const StageChunk& chunk) {
  const ModelRun& run = pass.run;
  NoHooks hooks;
  std::vector<TailedFree> none;  // nothing is saved, and so nothing sent
  b.alloc_named(Category::activations, input_bytes(run, chunk), detail::kOutputName);
  for (const std::int64_t bytes : run.shared_bytes) b.alloc(Category::activations, bytes);
  for (const SegmentRepeat& repeat : chunk.repeats) {
    if (repeat.count == 0) continue;
    const SegmentRun& s = run.segments[repeat.segment];
    const std::int64_t first = s.first && repeat.begins ? 1 : 0;
    if (first > 0) detail::emit_iterations(b, 1, detail::forward_of(s.first->forward), hooks, none);
    detail::emit_iterations(b, repeat.count - first, detail::forward_of(s.forward), hooks, none);
    detail::drop_left(b, s.forward, detail::slot_base(run, repeat.segment), repeat.count);
  }
  drop_names(b, run, chunk.repeats);
  for (const std::int64_t bytes : run.shared_bytes) b.free(Category::activations, bytes);
  const std::int64_t sent = output_bytes(run, chunk);
  emit_send(b, pass.plan, sent, "activations to the next stage");
  b.free_named(Category::activations, sent, detail::kOutputName);
}

}  // namespace

std::int64_t emit_megatron_pass(ProgramBuilder& b, const KeptWeightsPass& pass) {
  if (pass.plan.parallel.pipeline == 1) return emit_whole_pass(b, pass);
  for (const StageChunk& chunk : stage_of_rank(pass.model, pass.plan, pass.rank).chunks)
    emit_chunk(b, pass, chunk);
  return 0;
}

void add_megatron_frozen(Program& program, const KeptWeightsPass& pass) {
  const Stage stage = stage_of_rank(pass.model, pass.plan, pass.rank);
  append_parameters(program.resident, parameters_of(pass.model, stage), pass.plan);
}

}  // namespace shardplan
