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
      kept_(run.segments.size(), false),
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
  find_kept(run, kept_room(run, zero));
  find_prefetch(run, zero);
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

std::int64_t GatherPlan::prefetched_bytes(std::int64_t elements) const {
  if (!quantizes_ || engine_.ranks == 1) return engine_.b * elements * factor_;
  const std::int64_t in_8_bits = engine_.ranks * quantized_bytes(ceil_div(elements, engine_.ranks));
  return engine_.b * elements + (factor_ > 1 ? in_8_bits + 2 * elements : 0);
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

std::int64_t GatherPlan::module_elements(ModuleId id) const {
  std::int64_t sum = 0;
  for (const ParameterId p : model_.modules[static_cast<std::size_t>(id)].parameters)
    sum += model_.parameters[static_cast<std::size_t>(p)].numel;
  return sum;
}

/// A module stays gathered when fewer than this many elements come after it in the forward pass.
/// With d of them it is used again at distance 2d, since backward mirrors forward
/// (partitioned_param_coordinator.py __params_to_release). And what the prefetcher has come upon in
/// the backward pass's part of its queue is not released before its use there: every module's fetch
/// pops one more bucket off the queue and skips what is there, until max_live_parameters are
/// (fetch_sub_module).
std::int64_t GatherPlan::kept_room(const ModelRun& run, const ZeroOptions& zero) const {
  const std::int64_t reused = (zero.max_reuse_distance + 1) / 2;
  if (!prefetches_ || run.segments.empty()) return reused;
  // A last module that is larger than the limit leaves no room to prefetch beside it.
  std::int64_t last = 0;
  for (const TapeEvent& e : run.segments.back().forward.forward)
    if (e.kind == TapeEvent::Kind::fetch) last = std::max(last, module_elements(e.id));
  return last < zero.max_live_parameters ? std::max(reused, zero.max_live_parameters) : reused;
}

void GatherPlan::find_kept(const ModelRun& run, std::int64_t room) {
  std::int64_t after = 0;
  for (std::size_t s = run.segments.size(); s-- > 0 && after < room;) {
    std::int64_t size = 0, head = 0;  // of an iteration, and of the module that starts it
    for (const TapeEvent& e : run.segments[s].forward.forward) {
      if (e.kind != TapeEvent::Kind::release) continue;
      const std::int64_t elements = module_elements(e.id);
      if (size == 0) head = elements;
      size += elements;
    }
    const std::int64_t repeat = run.segments[s].segment->repeat;
    // The module that starts an iteration has the whole iteration after it, less itself.
    kept_[s] = size == 0 || (room - after - 1 + head) / size >= repeat;
    if (!kept_[s]) return;
    after += repeat * size;
  }
}

/// The queue is popped while fewer than the bucket's elements are under way, so the last tensor
/// overshoots it. The worst window of any segment that is not kept over the turn.
void GatherPlan::find_prefetch(const ModelRun& run, const ZeroOptions& zero) {
  if (zero.prefetch_bucket_size <= 0) return;
  for (std::size_t s = 0; s < run.segments.size(); ++s) {
    const SegmentRun& segment = run.segments[s];
    if (kept_[s]) continue;
    std::vector<std::int64_t> sizes;
    for (const TapeEvent& e : segment.forward.forward) {
      if (e.kind != TapeEvent::Kind::fetch) continue;
      for (const ParameterId p : model_.modules[static_cast<std::size_t>(e.id)].parameters)
        if (!persistent(p)) sizes.push_back(gathered_bytes(p) / engine_.b);
    }
    const std::size_t n = sizes.size();
    const std::size_t reach = segment.segment->repeat > 1 ? 2 * n : n;
    for (std::size_t start = 0; start < n; ++start) {
      std::int64_t window = 0;
      for (std::size_t i = start + 1; i < reach && window < zero.prefetch_bucket_size; ++i)
        window += sizes[i % n];
      window = std::min(window, std::max<std::int64_t>(zero.max_live_parameters - sizes[start], 0) +
                                    sizes[start]);
      prefetch_bytes_ = std::max(prefetch_bytes_, prefetched_bytes(window));
    }
  }
}

}  // namespace shardplan
