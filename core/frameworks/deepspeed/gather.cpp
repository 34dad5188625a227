#include "frameworks/deepspeed/gather.h"

#include <algorithm>

namespace shardplan {

namespace {

/// The parameters of modules that run.
std::vector<bool> fetched_parameters(const Model& model, const ModelRun& run) {
  std::vector<bool> fetched(model.parameters.size(), false);
  for (const SegmentRun& s : run.segments)
    for (const TapeEvent& e : s.forward.forward)
      if (e.kind == TapeEvent::Kind::fetch)
        for (const ParameterId p : model.modules[static_cast<std::size_t>(e.id)].parameters)
          fetched[static_cast<std::size_t>(p)] = true;
  return fetched;
}

}  // namespace

GatherPlan::GatherPlan(const Model& model, const Plan& plan, const ModelRun& run,
                       const Engine& engine)
    : model_(model),
      engine_(engine),
      persistent_(model.parameters.size(), false),
      backward_(model.modules.size(), false) {
  for (const SegmentRun& s : run.segments)
    for (const TapeEvent& e : s.backward.backward)
      if (e.kind == TapeEvent::Kind::release) backward_[static_cast<std::size_t>(e.id)] = true;
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  type_ = plan.precision.params;
  quantizes_ = zero.quantized_weights && !zero.mics();  // whose gathers do not ask for it
  if (zero.has_secondary()) secondary_ranks_ = std::min(zero.hpz_partition_size, engine.ranks);
  const bool offloaded = zero.offload_param.device != OffloadDevice::none;
  gathers_ = engine.ranks > 1 || offloaded;
  // MiCS gathers each tensor into its own place (mics.py _flat_all_gather_with_coalescing_manager).
  const bool one_buffer =
      zero.allgather_sequential || zero.use_all_reduce_for_fetch_params || zero.mics();
  factor_ = one_buffer || engine.ranks == 1 ? 1 : 2;
  if (!gathers_) return;
  mark_persistent(zero.param_persistence_threshold, zero.model_persistence_threshold,
                  fetched_parameters(model, run));
  prefetches_ = zero.prefetch_bucket_size > 0;
}

std::int64_t GatherPlan::gathered_bytes(ParameterId id) const {
  const Parameter& p = model_.parameters[static_cast<std::size_t>(id)];
  const std::int64_t ranks = engine_.ranks_of(p);
  return engine_.b * ranks * ceil_div(p.numel, ranks);
}

std::int64_t GatherPlan::shard_of(ParameterId id, bool secondary) const {
  const Parameter& p = model_.parameters[static_cast<std::size_t>(id)];
  const std::int64_t shard = ceil_div(p.numel, engine_.ranks_of(p));
  return secondary ? shard * (engine_.ranks / secondary_ranks_) : shard;
}

GatherBytes GatherPlan::bytes_of(const GatherSet& set) const {
  if (set.ids.empty()) return {};
  if ((quantizes_ || set.stored) && engine_.ranks > 1) return quantized(set);
  GatherBytes bytes;
  for (const ParameterId id : set.ids) bytes.payload += gathered_bytes(id);
  bytes.received = (set.ids.size() > 1 ? factor_ - 1 : 0) * bytes.payload;
  return bytes;
}

/// partition_parameters.py _all_gather_sequential for one tensor and _all_gather_coalesced for
/// several; AllGatherHandle.wait and AllGatherCoalescedHandle.wait widen what has arrived.
GatherBytes GatherPlan::quantized(const GatherSet& set) const {
  const bool several = set.ids.size() > 1 && factor_ > 1;
  const bool casts = type_ != DType::f16;  // the kernels read and write fp16
  const std::int64_t ranks = set.secondary ? secondary_ranks_ : engine_.ranks;
  std::int64_t shards = 0, whole = 0, largest = 0, own = 0;
  for (const ParameterId id : set.ids) {
    const std::int64_t shard = shard_of(id, set.secondary);
    shards += shard;
    whole += ranks * shard;
    largest = std::max(largest, ranks * shard);
    own += quantized_bytes(shard);
  }
  if (several && !set.stored) own = quantized_bytes(shards);  // one tensor for the quantizer
  GatherBytes bytes;
  bytes.payload = ranks * own;
  (several ? bytes.received : bytes.early) = bytes.payload;
  if (!set.stored) bytes.copies = (several ? engine_.b : 0) * shards + (casts ? 2 * shards : 0);
  if (!set.stored || several) bytes.own = own;  // what is stored is put together, if several
  // Of several tensors the int8 buffer and its fp16 copy stay with the handle that all share.
  bytes.widened = several ? 2 * whole : 0;
  bytes.each_widened = true;
  bytes.cast = casts ? 2 * largest : 0;
  bytes.moved = (1 + 2) * whole + (several || casts ? (2 + engine_.b) * whole : 0);
  return bytes;
}

/// parameter_offload.py mark_persistent_parameters, over all repetitions of a tensor at once. One
/// that no module asks for, such as those of a tower without images, is never gathered.
void GatherPlan::mark_persistent(std::int64_t threshold, std::int64_t most,
                                 const std::vector<bool>& fetched) {
  std::int64_t marked = 0;
  for (const ParameterGroup& group : model_.groups) {
    for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
      const Parameter& p = model_.parameters[static_cast<std::size_t>(i)];
      const std::int64_t all = checked_mul(p.numel, group.repeat);
      if (p.numel > threshold || all > most - marked) continue;
      persistent_[static_cast<std::size_t>(i)] = true;
      marked += all;
      if (fetched[static_cast<std::size_t>(i)])
        persistent_bytes_ += gathered_bytes(i) * group.repeat;
    }
  }
}

}  // namespace shardplan
