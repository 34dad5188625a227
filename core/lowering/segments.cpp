#include "lowering/segments.h"

#include "program/math_attention.h"

namespace shardplan {

Regime regime_of(const Plan& plan) {
  // FSDP2's policy casts the gathered parameters; the modules then run in that type throughout.
  const Precision& p = plan.precision;
  return {plan.framework.kind == FrameworkKind::fsdp2 ? p.compute : p.params, p.compute};
}

Sizes sizes_of(const Plan& plan) {
  const Workload& w = plan.workload;
  return {w.micro_batch, w.sequence_length,
          w.target_length > 0 ? w.target_length : w.sequence_length};
}

namespace {

/// Shared tensors that something holds on to between the passes: autograd, or a checkpoint, which
/// keeps the arguments of its block.
std::vector<bool> kept_in_backward(const Model& model, const Plan& plan, const ModelRun& run) {
  std::vector<bool> kept(model.shared.size(), false);
  for (const SegmentRun& s : run.segments) {
    for (const std::int32_t i : s.forward.saved_shared) kept[static_cast<std::size_t>(i)] = true;
    if (plan.checkpointing == Checkpointing::none || !s.segment->checkpointable) continue;
    for (const Input& in : s.segment->graph.inputs())
      if (in.kind == InputKind::shared) kept[static_cast<std::size_t>(in.shared)] = true;
  }
  return kept;
}

}  // namespace

ModelRun run_segments(const Model& model, const Plan& plan) {
  const Regime regime = regime_of(plan);
  const Sizes sizes = sizes_of(plan);
  ModelRun run;
  run.segments.reserve(model.segments.size());
  DType stream = regime.params;
  bool needs_grad = true;  // of the stream; false after frozen embeddings
  for (const Segment& original : model.segments) {
    const std::optional<Segment> rewritten = without_fused_attention(original, regime);
    const Segment& segment = rewritten ? *rewritten : original;
    SegmentRun s;
    s.segment = &original;
    if (plan.checkpointing == Checkpointing::full && segment.checkpointable) {
      s.forward = run_tape(model, segment, regime, sizes, stream, TapeMode::discard);
      s.backward = run_tape(model, segment, regime, sizes, stream, TapeMode::redo);
      TapeCost& cost = s.backward.backward_cost;  // the recomputation happens in backward
      cost.flops += s.backward.forward_cost.flops;
      cost.moved_bytes += s.backward.forward_cost.moved_bytes;
      cost.kernels += s.backward.forward_cost.kernels;
    } else {
      s.forward = run_tape(model, segment, regime, sizes, stream, TapeMode::keep);
      if (!needs_grad)
        s.first = run_tape(model, segment, regime, sizes, stream, TapeMode::keep, false);
      s.backward.backward = std::move(s.forward.backward);
      s.backward.backward_cost = s.forward.backward_cost;
    }
    stream = s.forward.output_dtype;
    needs_grad = (s.first ? *s.first : s.forward).output_needs_grad ||
                 plan.checkpointing == Checkpointing::full;  // enable_input_require_grads
    run.segments.push_back(std::move(s));
  }
  for (const Shared& shared : model.shared) {
    const std::int64_t bytes =
        round_up(checked_mul(elements(shared.extent, sizes),
                             size_of(shared.f32 ? DType::f32 : regime.params)),
                 kAllocationUnit);
    const std::int64_t output =
        run.segments[static_cast<std::size_t>(shared.maker)].forward.output_bytes;
    run.shared_bytes.push_back(shared.is_output ? 0 : bytes);
    run.shared_gradient_bytes.push_back(shared.is_output ? output : 0);
  }
  run.shared_kept = kept_in_backward(model, plan, run);
  return run;
}

std::vector<Stretch> whole_segments(const ModelRun& run) {
  std::vector<Stretch> all;
  for (std::size_t i = 0; i < run.segments.size(); ++i)
    all.push_back({i, run.segments[i].segment->repeat});
  return all;
}

}  // namespace shardplan
