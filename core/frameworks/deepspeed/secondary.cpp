#include "frameworks/deepspeed/secondary.h"

#include "program/pinned_memory.h"
#include "program/tape.h"

namespace shardplan {
namespace {

/// Parameters whose modules the forward pass releases.
std::vector<bool> released_in_passes(const Model& model, const ModelRun& run) {
  std::vector<bool> released(model.parameters.size(), false);
  for (const SegmentRun& s : run.segments)
    for (const TapeEvent& e : s.forward.forward) {
      if (e.kind != TapeEvent::Kind::release) continue;
      for (const ParameterId p : model.modules[static_cast<std::size_t>(e.id)].parameters)
        released[static_cast<std::size_t>(p)] = true;
    }
  return released;
}

}  // namespace

SecondaryShards::SecondaryShards(const Model& model, const Plan& plan, const ModelRun& run,
                                 const GatherPlan& gather)
    : model_(model), gather_(gather), in_passes_(model.parameters.size(), false) {
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  exist_ = zero.has_secondary() && gather.gathers();
  if (!exist_) return;
  on_host_ = zero.offload_param.device != OffloadDevice::none;
  stores_quantized_ = zero.quantized_nontrainable_weights;
  b_ = size_of(plan.precision.params);
  in_passes_ = released_in_passes(model, run);
  for (const ParameterGroup& group : model.groups)
    for (ParameterId id = group.first; id < group.first + group.count; ++id) {
      const auto i = static_cast<std::size_t>(id);
      const bool trainable = model.parameters[i].trainable;
      if (!trainable || gather.persistent(id)) in_passes_[i] = false;
      const std::int64_t bytes = checked_mul(bytes_of(id), group.repeat);
      (trainable ? trainable_ : frozen_) += bytes;
      if (trainable && !in_passes_[i]) late_ += bytes;
      if (zero.offload_param.pin_memory)
        pinned_ += group.repeat * pinned_block(b_ * gather.shard_of(id, true));
    }
}

std::int64_t SecondaryShards::bytes_of(ParameterId id) const {
  const bool frozen = !model_.parameters[static_cast<std::size_t>(id)].trainable;
  return frozen_shard_bytes(gather_.shard_of(id, true), b_, frozen && stores_quantized_);
}

std::int64_t frozen_shard_bytes(std::int64_t elements, std::int64_t b, bool quantized) {
  if (!quantized) return round_up(checked_mul(b, elements), kAllocationUnit);
  const std::int64_t scales = quantized_bytes(elements) - elements;
  return round_up(elements, kAllocationUnit) + round_up(scales, kAllocationUnit);
}

}  // namespace shardplan
