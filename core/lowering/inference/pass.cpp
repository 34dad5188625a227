#include "lowering/inference/pass.h"

#include <algorithm>

#include "lowering/model_names.h"

namespace shardplan {
namespace {

/// The boolean mask of sliding layers, one byte an element, where there is one.
std::int64_t mask_bytes(const Shared& shared, const Pass& pass, const Sizes& sizes) {
  Sizes windowed = sizes;
  windowed.context = context_of(pass, shared.mask_from);
  return windowed.context >= shared.mask_from ? elements(shared.extent, windowed) : 0;
}

}  // namespace

std::int64_t context_of(const Pass& pass, std::int64_t window) {
  const std::int64_t kept = window > 0 ? std::min(pass.past, window - 1) : pass.past;
  return checked_add(kept, pass.tokens);
}

std::int64_t window_of(const Segment& segment) {
  for (const Op& op : segment.graph.ops())
    if (op.kind == OpKind::cache) return op.window;
  return 0;
}

ModelRun run_pass(const Model& model, const Plan& plan, const Pass& pass, const Pass* before) {
  Regime regime = regime_of(plan);
  if (plan.workload.generation.fp8_cache) regime.cache = DType::i8;
  Sizes sizes = sizes_of(plan, model);
  sizes.sequence = pass.tokens;
  sizes.context = context_of(pass, 0);
  ModelRun run{.buffers = model.facts.buffer_bytes};
  DType stream = regime.params;
  for (const Segment& segment : model.segments) {
    const std::int64_t window = window_of(segment);
    Sizes own = sizes;
    own.context = context_of(pass, window);
    own.cached = before == nullptr ? 0 : context_of(*before, window);
    SegmentRun s;
    s.segment = &segment;
    s.forward = run_tape(model, segment, regime, own, stream, TapeMode::infer);
    stream = s.forward.output_dtype;
    if (!run.segments.empty() && run.segments.back().forward.names_output) {
      s.first = LayerTapes{without_input_freed(s.forward), {}};
      run.named_input = run.segments.back().forward.output_bytes;
    }
    run.segments.push_back(std::move(s));
  }
  fill_tables(run);
  for (std::size_t i = 0; i < model.shared.size(); ++i) {
    const Shared& shared = model.shared[i];
    const std::int64_t bytes = shared.mask_from > 0
                                   ? mask_bytes(shared, pass, sizes)
                                   : checked_mul(elements(shared.extent, sizes),
                                                 size_of(shared.f32 ? DType::f32 : regime.params));
    run.shared_bytes.push_back(round_up(bytes, kAllocationUnit));
    run.last_user.push_back(static_cast<std::size_t>(shared.maker));
  }
  // The model's forward made them and has names for them until it returns to the head's.
  const std::size_t last = run.segments.size() < 2 ? 0 : run.segments.size() - 2;
  for (std::size_t& user : run.last_user) user = std::max(user, last);
  return run;
}

}  // namespace shardplan
