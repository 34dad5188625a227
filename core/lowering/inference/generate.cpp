#include "lowering/inference/generate.h"

#include <algorithm>

#include "frameworks/registry.h"
#include "lowering/inference/injected.h"
#include "lowering/inference/kept_weights.h"
#include "lowering/library_workspaces.h"
#include "lowering/tensors.h"
#include "parallel/groups.h"
#include "program/compose.h"

namespace shardplan {
namespace {

/// Passes after the prompt that are written out.
constexpr std::int64_t kMostPasses = 32;

/// The token ids that a pass takes and the positions that it makes for them, both int64.
std::int64_t ids_bytes(std::int64_t count) {
  return round_up(checked_mul(count, size_of(DType::i64)), kAllocationUnit);
}

/// Keys and values of all layers after `pass`.
std::int64_t cache_bytes(const ModelRun& run) {
  std::int64_t sum = 0;
  for (const SegmentRun& s : run.segments)
    for (const TapeEvent& e : s.forward.forward)
      if (e.kind == TapeEvent::Kind::alloc && e.id == kCacheSlot)
        sum = checked_add(sum, checked_mul(e.bytes, s.segment->repeat));
  return sum;
}

/// Appends a pass with the positions of its tokens. What frameworks leave gathered behind a pass
/// goes with it: the next one gathers it again.
void append_pass(Program& whole, const KeptWeightsPass& pass, std::int64_t tokens) {
  Program part = program_of(pass.run);
  ProgramBuilder b(part);
  b.alloc(Category::other, ids_bytes(tokens));
  traits_of(pass.plan).emit_inference(b, pass);
  b.free(Category::other, ids_bytes(tokens));
  append_events(whole, part, std::nullopt);
}

/// The next token takes the place of the logits that it was chosen from. generate() looks at it to
/// see whether all sequences have ended: the host waits.
void choose_token(ProgramBuilder& b, const ModelRun& run, std::int64_t ids) {
  b.synchronize();
  b.alloc(Category::other, ids);
  b.free_named(Category::logits_and_loss, run.segments.back().forward.output_bytes,
               detail::kOutputName);
}

}  // namespace

std::vector<Pass> decode_passes(const Workload& w) {
  const std::int64_t steps = std::min(w.generation.new_tokens, kMostPasses);
  std::vector<Pass> passes;
  for (std::int64_t i = 1; i <= steps; ++i)
    passes.push_back({1, w.sequence_length + w.generation.new_tokens * i / steps - 1});
  return passes;
}

std::int64_t full_cache_bytes(const Model& model, const Plan& plan) {
  const Workload& w = plan.workload;
  if (w.generation.injection) return 0;
  const Pass prompt{w.sequence_length, 0};
  const std::vector<Pass> passes = decode_passes(w);
  if (passes.empty()) return cache_bytes(run_pass(model, plan, prompt, nullptr));
  const Pass& before = passes.size() > 1 ? passes[passes.size() - 2] : prompt;
  return cache_bytes(run_pass(model, plan, passes.back(), &before));
}

std::int64_t engine_cache_bytes(const Model& model, const Plan& plan) {
  return full_cache_bytes(model, plan) / model.facts.cached_copies;
}

Program lower_generation(const Model& model, const Plan& plan) {
  const Workload& w = plan.workload;
  if (w.generation.injection) return lower_injected(model, plan);
  Program program;
  program.counts_blocks = true;
  ProgramBuilder b(program);
  const Pass prompt{w.sequence_length, 0};
  ModelRun run = run_pass(model, plan, prompt, nullptr);
  b.resident(Category::workspace, cublas_workspace(plan.cluster.gpu));
  traits_of(plan).add_frozen(program, {model, plan, run});
  b.resident(Category::other, batch_bytes(plan));
  program.model_bytes = total_bytes(program.resident);

  const std::int64_t ids = ids_bytes(w.micro_batch);
  b.begin_phase(Phase::prefill);
  append_pass(program, {model, plan, run, true}, w.sequence_length);
  b.end_phase(Phase::prefill);

  b.begin_phase(Phase::decode);
  choose_token(b, run, ids);
  Pass before = prompt;
  for (const Pass& pass : decode_passes(w)) {
    run = run_pass(model, plan, pass, &before);
    append_pass(program, {model, plan, run, true}, pass.tokens);
    choose_token(b, run, ids);
    b.free(Category::other, ids);
    before = pass;
  }
  b.end_phase(Phase::decode);
  b.free(Category::other, ids);
  b.free(Category::kv_cache, cache_bytes(run));
  return program;
}

Program lower_pass(const Model& model, const Plan& plan, const Pass& pass, const Pass* before) {
  if (plan.workload.generation.injection) return lower_injected_pass(model, plan, pass, before);
  Program program;
  const ModelRun run = run_pass(model, plan, pass, before);
  append_pass(program, {model, plan, run, true}, pass.tokens);
  program.groups = group_shapes(plan);
  return program;
}

}  // namespace shardplan
