#include "frameworks/deepspeed/gather_hooks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.h"
#include "frameworks/deepspeed/stage3_calls.h"
#include "lowering/optimizer_kernels.h"

namespace shardplan {
namespace {

// Marks that the host waits for.
constexpr std::int32_t kFetchEvents = 0, kReduceEvents = 1;

}  // namespace

GatherHooks::GatherHooks(const Stage3& z, const GatherSchedule& schedule, bool backward,
                         GatheredTensors& gathered)
    : z_(z),
      schedule_(schedule),
      backward_(backward),
      gathered_(gathered),
      uses_(z.model, z.run, schedule.repeats(backward)),
      reached_(z.run.segments.size(), 0) {}

void GatherHooks::enter(ProgramBuilder&, std::size_t k) {
  const std::vector<SegmentRepeat>& repeats = schedule_.repeats(backward_);
  if (k > 0) reached_[repeats[repeat_].segment] += repeats[repeat_].count;
  repeat_ = k;
}

void GatherHooks::begin(ProgramBuilder&) {
  event_ = schedule_.begin(backward_, repeat_);
}

void GatherHooks::fetch(ProgramBuilder& b, ModuleId id) {
  if (!z_.gather.gathers()) return;
  const ModuleGathers gathers = schedule_.at(event_++);
  gathered_.use(b, id, gathers);
  for (const GatherSet& set : schedule_.awaited_sets(gathers)) await_gather(b, set);
  gathered_.gather_ahead(b, gathers);
}

void GatherHooks::await_gather(ProgramBuilder& b, const GatherSet& set) const {
  const GatherBytes bytes = z_.gather.bytes_of(set);
  b.host_work(Issue::engine, calls_of(set));
  if (z_.ranks_of(set) > 1) {
    send(b, set, bytes.payload);
    b.wait(Stream::communication);
  }
  if (bytes.moved > 0)
    b.compute({sweep(static_cast<double>(bytes.moved), DType::f16,
                     static_cast<std::int32_t>(set.ids.size()))});
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

void GatherHooks::send(ProgramBuilder& b, const GatherSet& set, std::int64_t payload) const {
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
  if (z_.gather.gathers()) gathered_.release(b, id, schedule_.at(event_++));
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
  const SegmentRepeat& repeat = schedule_.repeats(backward_)[repeat_];
  const auto& first = z_.schedule.first_flush;
  if (first && first->before == id && first->segment == repeat.segment &&
      first->iteration == reached_[first->segment] && repeat.count == 1)
    z_.flush(b, z_.schedule.first);
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

}  // namespace shardplan
