#include "frameworks/deepspeed/gather_hooks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "frameworks/deepspeed/stage3_calls.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/tensors.h"

namespace shardplan {
namespace {

// Marks that the host waits for.
constexpr std::int32_t kFetchEvents = 0, kReduceEvents = 1;

/// How many modules hold each parameter over the turn: a tied tensor is there until the backward
/// pass has gone through all of them. Those of a repeated segment belong to one each.
std::vector<std::int32_t> holders_over_the_turn(const Stage3& z) {
  std::vector<std::int32_t> holders(z.model.parameters.size(), 0);
  for (std::size_t s = 0; s < z.run.segments.size(); ++s) {
    const GatherPlan::Kept& kept = z.gather.kept(s);
    std::vector<bool> seen(z.model.modules.size(), false);
    for (const TapeEvent& e : z.run.segments[s].forward.forward) {
      const auto id = static_cast<std::size_t>(e.id);
      if (e.kind != TapeEvent::Kind::release || seen[id]) continue;
      seen[id] = true;
      if (kept.kept == 0 && !(kept.has_edge && kept.edge[id])) continue;
      if (!z.gather.used_in_backward(e.id)) continue;
      for (const ParameterId p : z.model.modules[id].parameters)
        ++holders[static_cast<std::size_t>(p)];
    }
  }
  return holders;
}

}  // namespace

GatherHooks::GatherHooks(const Stage3& z, const std::vector<SegmentRepeat>& repeats,
                         PassPlace place, std::vector<bool>& divided)
    : z_(z),
      repeats_(repeats),
      place_(place),
      divided_(divided),
      gathered_(z.model.parameters.size(), 0),
      shared_(z.model.parameters.size()),
      kept_(z.model.parameters.size(), false),
      waits_(z.model.parameters.size(), false),
      holders_(place.backward ? holders_over_the_turn(z)
                              : std::vector<std::int32_t>(z.model.parameters.size(), 0)),
      uses_(z.model, z.run, repeats),
      reached_(z.run.segments.size(), 0),
      pending_(z.model.modules.size(), 0) {}

void GatherHooks::prefetch(ProgramBuilder& b) {
  if (!z_.gather.gathers()) return;
  prefetched_ = z_.gather.prefetch_bytes();
  if (prefetched_ == 0) return;
  b.alloc(Category::gathered_parameters, prefetched_, z_.gather_pool());
  b.after_first_step();
}

void GatherHooks::end_prefetch(ProgramBuilder& b) {
  if (prefetched_ == 0) return;
  b.free(Category::gathered_parameters, prefetched_, z_.gather_pool());
  b.after_first_step();
  prefetched_ = 0;
}

void GatherHooks::enter(ProgramBuilder& b, std::size_t k) {
  const bool backward = place_.backward;
  if (k > 0) reached_[repeats_[repeat_].segment] += repeats_[repeat_].count;
  repeat_ = k;
  const SegmentRepeat& s = repeats_[k];
  const SegmentRun& segment = z_.run.segments[s.segment];
  const GatherPlan::Kept& kept = z_.gather.kept(s.segment);
  const std::int64_t repeat = segment.segment->repeat;
  // Iterations counted from the end of the forward pass.
  const std::int64_t from_end =
      backward ? reached_[s.segment] : repeat - reached_[s.segment] - s.count;
  all_kept_ = from_end < kept.kept;
  edge_ = !all_kept_ && kept.has_edge && from_end == kept.kept && s.count == 1 ? &kept : nullptr;
  // What is fetched ahead from here on is what stays.
  if (all_kept_ || edge_ != nullptr) end_prefetch(b);
  kept_.assign(kept_.size(), false);
  const auto& events = backward ? segment.backward.backward : segment.forward.forward;
  for (const TapeEvent& e : events) {
    if (e.kind != TapeEvent::Kind::release) continue;
    ++pending_[static_cast<std::size_t>(e.id)];
    if (backward && stays(e.id)) mark_gathered(e.id);
  }
}

void GatherHooks::enter_first(ProgramBuilder& b, const TapeRun& layer) {
  if (!z_.gather.gathers()) return;
  const auto& others = z_.run.segments[repeats_[repeat_].segment].backward.backward;
  for (const TapeEvent& e : others)
    if (e.kind == TapeEvent::Kind::release) pending_[static_cast<std::size_t>(e.id)] = 0;
  for (const TapeEvent& e : layer.backward)
    if (e.kind == TapeEvent::Kind::release) ++pending_[static_cast<std::size_t>(e.id)];
  std::vector<bool> seen(pending_.size(), false);
  for (const TapeEvent& e : others) {
    const auto id = static_cast<std::size_t>(e.id);
    if (e.kind != TapeEvent::Kind::release || seen[id] || !stays(e.id)) continue;
    seen[id] = true;
    mark_gathered(e.id);
    if (pending_[id] > 0) continue;
    for (const bool frozen : {false, true})
      if (!frozen || splits_sets()) gather_in_first_step(b, set_of(e.id, frozen, place_.first));
    for (const ParameterId p : z_.model.modules[id].parameters) release_parameter(b, p);
  }
}

void GatherHooks::fetch_first(ProgramBuilder& b) {
  if (z_.run.segments.empty()) return;
  const GatherPlan::Kept& last = z_.gather.kept(z_.run.segments.size() - 1);
  if (last.kept > 0) return;
  for (const TapeEvent& e : z_.run.segments.back().backward.backward) {
    if (e.kind != TapeEvent::Kind::fetch) continue;
    const bool there = last.has_edge && last.edge[static_cast<std::size_t>(e.id)];
    if (!there || !z_.gather.used_in_backward(e.id)) fetch(b, e.id);
    return;
  }
}

/// Trainable parameters and frozen ones go in calls of their own where some are quantized at rest
/// or have secondary shards already (partitioned_param_coordinator.py __all_gather_params).
bool GatherHooks::splits_sets() const {
  return z_.secondary.exist() || z_.zero.quantized_nontrainable_weights;
}

GatherSet GatherHooks::set_of(ModuleId id, bool frozen, bool outdated) const {
  GatherSet set;
  set.stored = frozen && z_.zero.quantized_nontrainable_weights;
  set.secondary = z_.secondary.exist() && (frozen || !outdated);
  for (const ParameterId p : z_.model.modules[static_cast<std::size_t>(id)].parameters) {
    const bool trainable = z_.model.parameters[static_cast<std::size_t>(p)].trainable;
    if (z_.gather.persistent(p) || (splits_sets() && trainable == frozen)) continue;
    set.ids.push_back(p);
  }
  return set;
}

void GatherHooks::hold(const GatherSet& set, const GatherBytes& bytes) {
  for (const ParameterId p : set.ids)
    gathered_[static_cast<std::size_t>(p)] = z_.gather.gathered_bytes(p);
  if (!set.ids.empty())
    shared_[static_cast<std::size_t>(set.ids.front())] = {bytes.received, bytes.widened};
}

void GatherHooks::alloc_each(ProgramBuilder& b, const GatherSet& set) const {
  for (const ParameterId p : set.ids)
    b.alloc(Category::gathered_parameters, z_.gather.gathered_bytes(p), z_.gather_pool());
}

void GatherHooks::fetch(ProgramBuilder& b, ModuleId id) {
  if (!z_.gather.gathers()) return;
  for (const bool frozen : {false, true}) {
    if (frozen && !splits_sets()) continue;
    GatherSet set = set_of(id, frozen, place_.first && !place_.backward);
    gather_in_first_step(b, set);
    std::erase_if(set.ids,
                  [&](ParameterId p) { return gathered_[static_cast<std::size_t>(p)] > 0; });
    fetch_set(b, set);
  }
}

/// partition_parameters.py _all_gather_dtype and _all_gather_sequential: ds_tensor.to(device), in
/// the gather's stream.
std::vector<std::int64_t> GatherHooks::brought_shards(const GatherSet& set) const {
  std::vector<std::int64_t> bytes;
  const bool quantized = set.stored || z_.zero.quantized_weights;
  if (!z_.offload_param || quantized || z_.ranks_of(set) == 1) return bytes;
  for (const ParameterId p : set.ids)
    bytes.push_back(checked_mul(z_.e.b, z_.gather.shard_of(p, set.secondary)));
  return bytes;
}

void GatherHooks::fetch_set(ProgramBuilder& b, const GatherSet& set) {
  if (set.ids.empty()) return;
  const GatherBytes bytes = z_.gather.bytes_of(set);
  const Stream pool = z_.gather_pool();
  hold(set, bytes);
  b.alloc(Category::gathered_parameters, bytes.received, pool);
  // Shards on the host come first. Several are copied into the buffer of all ranks and go; one is
  // what the gather sends.
  const std::vector<std::int64_t> brought = brought_shards(set);
  const bool copied = brought.size() > 1;
  const auto bring = [&] {
    for (const std::int64_t shard : brought) b.alloc(Category::communication_buffers, shard, pool);
  };
  const auto leave = [&] {
    for (const std::int64_t shard : brought) b.free(Category::communication_buffers, shard, pool);
  };
  if (copied) {
    bring();
    leave();
  }
  if (!bytes.each_widened) alloc_each(b, set);
  if (!copied) bring();
  b.alloc(Category::communication_buffers, bytes.early, pool);
  b.transient(Category::communication_buffers, bytes.copies, pool);
  b.alloc(Category::communication_buffers, bytes.own, pool);
  b.host_work(Issue::engine, calls_of(set));
  if (z_.ranks_of(set) > 1) {
    send(b, set, bytes.payload);
    b.wait(Stream::communication);
  }
  if (!copied) leave();
  b.free(Category::communication_buffers, bytes.own, pool);
  b.alloc(Category::gathered_parameters, bytes.widened, pool);
  if (bytes.each_widened) alloc_each(b, set);
  b.transient(Category::gathered_parameters, bytes.cast, pool);
  if (bytes.moved > 0)
    b.compute({sweep(static_cast<double>(bytes.moved), DType::f16,
                     static_cast<std::int32_t>(set.ids.size()))});
  b.free(Category::communication_buffers, bytes.early, pool);
  if (z_.offload_param) {
    std::int64_t read = 0;
    for (const ParameterId p : set.ids) read += z_.e.b * z_.gather.shard_of(p, set.secondary);
    const bool nvme = z_.zero.offload_param.device == OffloadDevice::nvme;
    b.fetch_ahead(nvme ? LinkKind::nvme : LinkKind::host, read, "parameter shards to the GPU");
  }
  await_fetch(b, set);
}

/// partitioned_param_coordinator.py _fetch_sub_module_impl: an event for each parameter that was
/// waited for, of which no more than __max_ongoing_fetch_events may be under way. What one rank
/// brings from the host it waits for at once (NoGatherCoalescedHandle.wait).
void GatherHooks::await_fetch(ProgramBuilder& b, const GatherSet& set) const {
  constexpr std::int64_t kOngoingFetches = 2;
  const bool gathers = z_.ranks_of(set) > 1;
  const Stream stream = gathers ? Stream::communication : Stream::copy;
  for (std::size_t i = 0; i < set.ids.size(); ++i) {
    if (gathers) b.throttle(kFetchEvents, kOngoingFetches + 1, false);
    b.mark(stream, kFetchEvents);
  }
  if (!gathers) b.throttle(kFetchEvents, 1, false);
}

/// A bucket of tensors is fetched ahead in one gather (partitioned_param_coordinator.py,
/// fetch_sub_module), of which these are a part.
std::int32_t GatherHooks::calls_of(const GatherSet& set) const {
  double elements = 0;
  for (const ParameterId p : set.ids)
    elements += static_cast<double>(z_.model.parameters[static_cast<std::size_t>(p)].numel);
  const double bucket =
      z_.gather.prefetches() ? static_cast<double>(z_.zero.prefetch_bucket_size) : 0;
  const double gathers = elements < bucket ? elements / bucket : 1;
  return kTensorCalls * static_cast<std::int32_t>(set.ids.size()) +
         static_cast<std::int32_t>(std::lround(kGatherCalls * gathers));
}

void GatherHooks::send(ProgramBuilder& b, const GatherSet& set, std::int64_t payload) {
  const auto gather = [&](std::int64_t bytes, const char* what, Group group) {
    if (z_.gather.prefetches()) {
      b.gather_ahead(bytes, what, group);
    } else {
      b.collective(Collective::all_gather, bytes, what, 1, group);
    }
  };
  if (set.secondary) {
    gather(payload, "secondary parameter all-gather", Group::shard);
  } else if (z_.zero.mics() && z_.zero.mics_hierarchical_gather) {
    // Each rank's shard goes to its peers on the other nodes, then all of them within the node;
    // between the two each tensor's are put in place through a copy (mics.py
    // _hierarchical_all_gather_params).
    const std::int64_t nodes = z_.e.ranks / z_.plan.cluster.gpus_per_node;
    std::int64_t largest = 0;
    for (const ParameterId p : set.ids) largest = std::max(largest, z_.gather.gathered_bytes(p));
    gather(payload / z_.e.ranks * nodes, "parameter all-gather between nodes", Group::across_nodes);
    b.transient(Category::communication_buffers, largest / z_.e.ranks * nodes, z_.gather_pool());
    gather(payload, "parameter all-gather in nodes", Group::node);
  } else {
    gather(payload, "parameter all-gather", z_.group_of(set));
  }
}

void GatherHooks::release(ProgramBuilder& b, ModuleId id) {
  calls_ += kModuleCalls;  // one rank alone has the hooks too
  if (!z_.gather.gathers()) return;
  if (--pending_[static_cast<std::size_t>(id)] > 0) return;  // used again in this iteration
  pending_[static_cast<std::size_t>(id)] = 0;
  const bool keeps = !place_.backward && stays(id);
  // A repeated segment's next iteration has tensors of its own; what others keep they can share.
  const bool repeats = z_.run.segments[repeats_[repeat_].segment].segment->repeat > 1;
  for (const ParameterId p : z_.model.modules[static_cast<std::size_t>(id)].parameters) {
    if (!keeps) {
      release_parameter(b, p);
      continue;
    }
    const auto kept = static_cast<std::size_t>(p);
    if (gathered_[kept] > 0 && !waits_[kept]) b.in_first_step(release_events(p, !z_.nodes_hold(p)));
    waits_[kept] = gathered_[kept] > 0 && !repeats;
    if (!repeats) continue;
    gathered_[kept] = 0;
    shared_[kept].clear();
  }
}

void GatherHooks::gather_in_first_step(ProgramBuilder& b, const GatherSet& set) {
  std::vector<Event> blocks;
  const auto add = [&](std::int64_t bytes) {
    if (bytes == 0) return;
    append_tensors(blocks, Category::gathered_parameters, bytes, 1);
    blocks.back().stream = z_.gather_pool();
  };
  for (const ParameterId p : set.ids) {
    const auto id = static_cast<std::size_t>(p);
    if (!waits_[id]) continue;
    waits_[id] = false;
    for (const std::int64_t bytes : shared_[id]) add(bytes);
    if (!z_.nodes_hold(p)) add(gathered_[id]);
  }
  b.in_first_step(std::move(blocks));
}

std::vector<Event> GatherHooks::release_events(ParameterId id, bool own) const {
  Program part;
  ProgramBuilder b(part);
  const auto p = static_cast<std::size_t>(id);
  if (own)
    b.free_used_on(Stream::compute, Category::gathered_parameters, gathered_[p], z_.gather_pool());
  for (const std::int64_t bytes : shared_[p])
    b.free(Category::gathered_parameters, bytes, z_.gather_pool());
  return part.events;
}

/// The kernels that were given until now still read what goes (free_param).
void GatherHooks::release_parameter(ProgramBuilder& b, ParameterId id) {
  const auto p = static_cast<std::size_t>(id);
  if (holders_[p] > 1) {
    --holders_[p];
    return;
  }
  const bool held = z_.nodes_hold(id) && (!place_.backward || kept_[p]);
  for (const Event& e : release_events(id, !held)) b.add(e);
  gathered_[p] = 0;
  shared_[p].clear();
  if (!place_.first || !z_.secondary.follows(id)) return;
  // Its first release since the step leaves the secondary shard; layers of a repeated segment
  // share the id, and each has its own.
  const bool is_first = !divided_[p] && (!place_.backward || kept_[p]);
  if (!is_first) return;
  kept_[p] = false;
  divided_[p] = z_.run.segments[repeats_[repeat_].segment].segment->repeat == 1;
  const std::int64_t bytes = z_.secondary.bytes_of(id);
  if (z_.secondary.on_host()) {
    b.copy(LinkKind::host, false, bytes, "secondary shards to the host");
  } else {
    b.alloc(Category::parameters, bytes);
  }
}

void GatherHooks::end(ProgramBuilder& b) {
  b.host_work(Issue::engine, calls_);
  calls_ = 0;
}

void GatherHooks::gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
  const GradientUse use = uses_.next(id);
  if (waits(use)) return emit_waiting(b, use, bytes);
  calls_ += kGradientCalls + flush_calls(id);
  b.alloc(Category::gradients, bytes);
  const auto& first = z_.schedule.first_flush;
  if (first && first->before == id && first->segment == repeats_[repeat_].segment &&
      first->iteration == reached_[first->segment] && repeats_[repeat_].count == 1)
    z_.flush(b, z_.schedule.first_elements);
  free_gradient(b, id, bytes);
  if (use == GradientUse::last) b.free(Category::gradients, bytes);
}

/// The bucket goes before a gradient that it has no room for.
std::int32_t GatherHooks::flush_calls(ParameterId id) {
  const std::int64_t elements = z_.model.parameters[static_cast<std::size_t>(id)].numel;
  const bool flushes = bucket_ > 0 && bucket_ + elements > z_.zero.reduce_bucket_size;
  bucket_ = elements + (flushes ? 0 : bucket_);
  return flushes ? kFlushCalls : 0;
}

/// The reduction's stream copies a gradient into the bucket after what made it
/// (__add_grad_to_ipg_bucket). Of buckets under way there are no more than
/// max_param_reduce_events, beside the one that is sent and the one that fills.
void GatherHooks::free_gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) const {
  constexpr std::int64_t kOngoingReductions = 2;
  b.throttle(kReduceEvents, (kOngoingReductions + 2) * z_.zero.reduce_bucket_size, false);
  b.follow(z_.reduce_pool());
  b.mark(z_.reduce_pool(), kReduceEvents, z_.model.parameters[static_cast<std::size_t>(id)].numel);
  b.free_used_on(z_.reduce_pool(), Category::gradients, bytes);
}

bool GatherHooks::stays(ModuleId id) const {
  if (!z_.gather.used_in_backward(id)) return false;
  return all_kept_ || (edge_ != nullptr && edge_->edge[static_cast<std::size_t>(id)]);
}

void GatherHooks::mark_gathered(ModuleId id) {
  for (const bool frozen : {false, true}) {
    if (frozen && !splits_sets()) continue;
    const GatherSet set = set_of(id, frozen, place_.first);
    for (const ParameterId p : set.ids) {
      const auto kept = static_cast<std::size_t>(p);
      waits_[kept] = waits_[kept] || gathered_[kept] == 0;  // a tied one may be there already
      kept_[kept] = true;
    }
    hold(set, z_.gather.bytes_of(set));
  }
}

}  // namespace shardplan
