#include "lowering/segments.h"

#include <algorithm>

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

ModelRun run_segments(const Model& model, const Plan& plan) {
  const Regime regime = regime_of(plan);
  const Sizes sizes = sizes_of(plan);
  ModelRun run;
  run.segments.reserve(model.segments.size());
  DType stream = regime.params;
  for (const Segment& segment : model.segments) {
    SegmentRun s;
    s.segment = &segment;
    const bool selective = plan.checkpointing == Checkpointing::selective;
    if (plan.checkpointing != Checkpointing::none && segment.checkpointable) {
      s.forward = run_tape(model, segment, regime, sizes, stream, TapeMode::discard, selective);
      s.backward = run_tape(model, segment, regime, sizes, stream, TapeMode::redo, selective);
      TapeCost& cost = s.backward.backward_cost;  // the recomputation happens in backward
      cost.flops += s.backward.forward_cost.flops;
      cost.moved_bytes += s.backward.forward_cost.moved_bytes;
      cost.kernels += s.backward.forward_cost.kernels;
    } else {
      s.forward = run_tape(model, segment, regime, sizes, stream, TapeMode::keep);
      s.backward.backward = std::move(s.forward.backward);
      s.backward.backward_cost = s.forward.backward_cost;
      s.backward.input_gradient_slot = s.forward.input_gradient_slot;
    }
    stream = s.forward.output_dtype;
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
  return run;
}

std::vector<Stretch> whole_segments(const ModelRun& run) {
  std::vector<Stretch> all;
  for (std::size_t i = 0; i < run.segments.size(); ++i)
    all.push_back({i, run.segments[i].segment->repeat});
  return all;
}

namespace detail {

std::int32_t slot_base(const ModelRun& run, std::size_t segment) {
  std::int32_t base = kFirstSlotName;
  for (std::size_t s = 0; s < segment; ++s)
    base += std::max(run.segments[s].forward.slots, run.segments[s].backward.slots);
  return base;
}

TapeNames forward_names(const ModelRun& run, std::size_t segment) {
  return {slot_base(run, segment), kChainedInputSlot, run.segments[segment].forward.output_slot,
          kOutputName};
}

TapeNames backward_names(const ModelRun& run, std::size_t segment) {
  const SegmentRun& s = run.segments[segment];
  return {slot_base(run, segment), kChainedGradientSlot, s.backward.input_gradient_slot,
          kGradientName};
}

}  // namespace detail
}  // namespace shardplan
