// ZeRO stage 3: DeepSpeedZeroOptimizer_Stage3 (deepspeed/runtime/zero/stage3.py,
// partition_parameters.py, partitioned_param_coordinator.py).
#include <algorithm>

#include "lowering/deepspeed/buckets.h"
#include "lowering/deepspeed/gather.h"
#include "lowering/deepspeed/stages.h"
#include "lowering/micro_batches.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/tensors.h"

namespace shardplan {
namespace {

struct Stage3 {
  const Model& model;
  const Plan& plan;
  const ModelRun& run;
  const Engine& e;
  const ZeroOptions& zero;
  ShardLayout layout;
  GatherPlan gather;
  BucketSchedule schedule;
  std::int64_t sub_group;  ///< S: elements of the largest optimizer sub-group
  bool offload_optimizer, offload_param;

  Stage3(const Model& model_, const Plan& plan_, const ModelRun& run_, const Engine& engine)
      : model(model_),
        plan(plan_),
        run(run_),
        e(engine),
        zero(plan_.framework.deepspeed.zero),
        layout(shard_layout(model_, engine.ranks)),
        gather(model_, plan_, run_, engine),
        schedule(schedule_buckets(model_, run_, zero.reduce_bucket_size,
                                  [](ParameterId) { return LayerRange{}; })),
        sub_group(largest_sub_group(model_, engine.ranks, zero.sub_group_size)),
        offload_optimizer(zero.offload_optimizer.device != OffloadDevice::none),
        offload_param(zero.offload_param.device != OffloadDevice::none) {}

  /// reduce_scatter_coalesced interleaves the bucket into a padded copy and keeps one part.
  /// With overlap_comm, parameters are gathered and gradients reduced on streams of their own
  /// (parameter_offload.py __allgather_stream, stage3.py reduce_and_partition_stream).
  Stream gather_pool() const { return zero.overlap_comm ? Stream::copy : Stream::compute; }
  Stream reduce_pool() const { return zero.overlap_comm ? Stream::communication : Stream::compute; }

  void flush(ProgramBuilder& b, std::int64_t elements) const {
    if (e.ranks == 1 || !zero.reduce_scatter) return;
    const std::int64_t copy = e.c * round_up(elements, e.ranks);
    const std::int64_t part = e.g * ceil_div(elements, e.ranks);
    b.alloc(Category::communication_buffers, copy, reduce_pool());
    b.transient(Category::communication_buffers, part, reduce_pool());
    b.free(Category::communication_buffers, copy, reduce_pool());
  }
};

/// Fetches and releases parameters around modules. What is gathered is tracked for the stretch
/// that runs: the parameters of a repeated segment belong to it alone.
class Hooks3 {
 public:
  static constexpr bool kOrdersKernels = true;

  Hooks3(const Stage3& z, const std::vector<Stretch>& stretches, bool backward)
      : z_(z),
        stretches_(stretches),
        backward_(backward),
        gathered_(z.model.parameters.size(), 0),
        uses_(gradient_uses(z.model, z.run)),
        left_(uses_),
        reached_(z.run.segments.size(), 0),
        pending_(z.model.modules.size(), 0) {}

  void enter(ProgramBuilder& b, std::size_t k) {
    // Near the end of the forward pass the prefetcher gathers for the backward pass.
    if (!backward_ && k == std::max<std::size_t>(stretches_.size(), 2) - 2)
      b.alloc(Category::gathered_parameters, z_.gather.ahead_bytes(), z_.gather_pool());
    if (k > 0) reached_[stretches_[stretch_].segment] += stretches_[stretch_].count;
    stretch_ = k;
    const Stretch& s = stretches_[k];
    const SegmentRun& segment = z_.run.segments[s.segment];
    const GatherPlan::Kept& kept = z_.gather.kept(s.segment);
    const std::int64_t repeat = segment.segment->repeat;
    // Iterations counted from the end of the forward pass.
    const std::int64_t from_end =
        backward_ ? reached_[s.segment] : repeat - reached_[s.segment] - s.count;
    all_kept_ = from_end < kept.kept;
    edge_ = !all_kept_ && kept.has_edge && from_end == kept.kept && s.count == 1 ? &kept : nullptr;
    const auto& events = backward_ ? segment.backward.backward : segment.forward.forward;
    for (const TapeEvent& e : events) {
      if (e.kind != TapeEvent::Kind::release) continue;
      ++pending_[static_cast<std::size_t>(e.id)];
      if (backward_ && stays(e.id)) mark_gathered(e.id);
    }
  }

  /// The first layer's backward has no use for modules that only pass gradients on to its input:
  /// what the forward pass kept of them is released.
  void enter_first(ProgramBuilder& b, const TapeRun& layer) {
    if (!z_.gather.gathers()) return;
    const auto& others = z_.run.segments[stretches_[stretch_].segment].backward.backward;
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
      for (const ParameterId p : z_.model.modules[id].parameters) {
        auto& g = gathered_[static_cast<std::size_t>(p)];
        b.free(Category::gathered_parameters, g);
        g = 0;
      }
    }
  }

  /// Fetches the module that the backward pass needs first, unless the forward pass kept it.
  void fetch_first(ProgramBuilder& b) {
    if (z_.run.segments.empty() || z_.gather.kept(z_.run.segments.size() - 1).kept > 0) return;
    for (const TapeEvent& e : z_.run.segments.back().backward.backward) {
      if (e.kind != TapeEvent::Kind::fetch) continue;
      fetch(b, e.id);
      return;
    }
  }

  void fetch(ProgramBuilder& b, ModuleId id) {
    if (!z_.gather.gathers()) return;
    std::int64_t bytes = 0, tensors = 0;
    const auto& parameters = z_.model.modules[static_cast<std::size_t>(id)].parameters;
    for (const ParameterId p : parameters) {
      if (z_.gather.persistent(p) || gathered_[static_cast<std::size_t>(p)] > 0) continue;
      bytes += z_.gather.gathered_bytes(p);
      ++tensors;
    }
    if (tensors == 0) return;
    const std::int64_t factor = tensors > 1 ? z_.gather.coalesced_factor() : 1;
    for (const ParameterId p : parameters) {
      auto& g = gathered_[static_cast<std::size_t>(p)];
      if (!z_.gather.persistent(p) && g == 0) g = factor * z_.gather.gathered_bytes(p);
    }
    b.alloc(Category::gathered_parameters, factor * bytes, z_.gather_pool());
    b.host_work(Issue::engine, 1);
    if (z_.e.ranks > 1) {
      if (z_.gather.prefetches()) {
        b.gather_ahead(bytes, "parameter all-gather");
      } else {
        b.collective(Collective::all_gather, bytes, "parameter all-gather");
      }
      b.wait(Stream::communication);
    }
    if (z_.offload_param) {
      const bool nvme = z_.zero.offload_param.device == OffloadDevice::nvme;
      b.fetch_ahead(nvme ? LinkKind::nvme : LinkKind::host, ceil_div(bytes, z_.e.ranks),
                    "parameter shards to the GPU");
    }
  }

  void release(ProgramBuilder& b, ModuleId id) {
    if (!z_.gather.gathers()) return;
    ++taken_;
    if (--pending_[static_cast<std::size_t>(id)] > 0) return;  // used again in this iteration
    pending_[static_cast<std::size_t>(id)] = 0;
    const bool keeps = !backward_ && stays(id);
    for (const ParameterId p : z_.model.modules[static_cast<std::size_t>(id)].parameters) {
      auto& g = gathered_[static_cast<std::size_t>(p)];
      if (!keeps) b.free(Category::gathered_parameters, g, z_.gather_pool());
      g = 0;
    }
  }

  /// The engine's work for the releases and gradients of one iteration.
  void end(ProgramBuilder& b) {
    b.host_work(Issue::engine, taken_);
    taken_ = 0;
  }

  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    auto& uses = left_[static_cast<std::size_t>(id)];
    if (uses > 1) {  // a tied tensor's first gradient waits in autograd; others are added to it
      if (uses == uses_[static_cast<std::size_t>(id)]) {
        b.alloc(Category::gradients, bytes);
      } else {
        b.transient(Category::gradients, bytes);
      }
      --uses;
      return;
    }
    ++taken_;
    b.alloc(Category::gradients, bytes);
    const auto& first = z_.schedule.first_flush;
    if (first && first->before == id && first->segment == stretches_[stretch_].segment &&
        first->iteration == reached_[first->segment] && stretches_[stretch_].count == 1)
      z_.flush(b, z_.schedule.first_elements);
    b.free(Category::gradients, bytes);
    if (uses_[static_cast<std::size_t>(id)] > 1) b.free(Category::gradients, bytes);
  }

 private:
  bool stays(ModuleId id) const {
    if (!z_.gather.used_in_backward(id)) return false;
    return all_kept_ || (edge_ != nullptr && edge_->edge[static_cast<std::size_t>(id)]);
  }

  /// What the forward pass kept, with the factor it was gathered at.
  void mark_gathered(ModuleId id) {
    std::int64_t tensors = 0;
    const auto& parameters = z_.model.modules[static_cast<std::size_t>(id)].parameters;
    for (const ParameterId p : parameters)
      if (!z_.gather.persistent(p)) ++tensors;
    const std::int64_t factor = tensors > 1 ? z_.gather.coalesced_factor() : 1;
    for (const ParameterId p : parameters)
      if (!z_.gather.persistent(p))
        gathered_[static_cast<std::size_t>(p)] = factor * z_.gather.gathered_bytes(p);
  }

  const Stage3& z_;
  const std::vector<Stretch>& stretches_;
  bool backward_;
  std::vector<std::int64_t> gathered_;  ///< bytes held, by parameter
  std::vector<std::int32_t> uses_;      ///< gradients of a parameter in a pass, by parameter
  std::vector<std::int32_t> left_;      ///< those it still waits for
  std::vector<std::int64_t> reached_;
  std::vector<std::int32_t> pending_;
  std::size_t stretch_ = 0;
  std::int32_t taken_ = 0;
  bool all_kept_ = false;
  const GatherPlan::Kept* edge_ = nullptr;
};

/// Forward stretches, cut where the reuse window begins.
std::vector<Stretch> cut_forward(const Stage3& z) {
  std::vector<Stretch> stretches;
  for (std::size_t s = 0; s < z.run.segments.size(); ++s) {
    const std::int64_t repeat = z.run.segments[s].segment->repeat;
    const GatherPlan::Kept& kept = z.gather.kept(s);
    const std::int64_t edge = kept.has_edge ? 1 : 0;
    for (const std::int64_t count : {repeat - kept.kept - edge, edge, kept.kept})
      if (count > 0) stretches.push_back({s, count});
  }
  return stretches;
}

/// Backward stretches, cut at the window and at the first flush.
std::vector<Stretch> cut_backward3(const Stage3& z) {
  std::vector<Stretch> stretches;
  for (std::size_t s = z.run.segments.size(); s-- > 0;) {
    const std::int64_t repeat = z.run.segments[s].segment->repeat;
    const GatherPlan::Kept& kept = z.gather.kept(s);
    std::vector<std::int64_t> at{kept.kept, kept.kept + (kept.has_edge ? 1 : 0), repeat};
    if (z.schedule.first_flush && z.schedule.first_flush->segment == s) {
      at.push_back(z.schedule.first_flush->iteration);
      at.push_back(z.schedule.first_flush->iteration + 1);
    }
    std::sort(at.begin(), at.end());
    std::int64_t from = 0;
    for (const std::int64_t to : at) {
      if (to > from) stretches.push_back({s, to - from});
      from = std::max(from, to);
    }
  }
  return stretches;
}

void emit_micro_batch(ProgramBuilder& b, const Stage3& z, const std::vector<Stretch>& forward,
                      const std::vector<Stretch>& backward) {
  const std::int64_t prefetched = z.gather.gathers() ? z.gather.prefetch_bytes() : 0;
  Hooks3 ahead(z, forward, false);
  b.begin_phase(Phase::forward);
  b.alloc(Category::gathered_parameters, prefetched, z.gather_pool());
  emit_forward(b, z.model, z.run, forward, ahead);
  // Nothing is left to fetch ahead of the turn.
  b.free(Category::gathered_parameters, prefetched, z.gather_pool());
  b.end_phase(Phase::forward);

  Hooks3 back(z, backward, true);
  b.begin_phase(Phase::backward);
  // The model's own pre-backward hook prefetches before the loss is differentiated.
  if (z.gather.prefetches()) back.fetch_first(b);
  emit_backward(b, z.model, z.run, backward, back);
  b.free(Category::gathered_parameters, z.gather.ahead_bytes(), z.gather_pool());
  z.flush(b, std::min(z.zero.reduce_bucket_size, z.e.trainable));
  if (z.e.ranks > 1) {
    const std::int64_t reduced = z.e.c * z.e.ranks * z.layout.trainable;
    const char* const what = "gradient reduce-scatter";
    if (z.zero.overlap_comm) {
      b.reduce_buckets(Collective::reduce_scatter, reduced, what, z.schedule.flushes);
    } else {
      b.collective(Collective::reduce_scatter, reduced, what, z.schedule.flushes);
    }
    b.wait(Stream::communication);
  }
  if (z.offload_optimizer)
    b.copy(LinkKind::host, false, z.e.g * z.layout.trainable, "gradient shards to the host");
  b.end_phase(Phase::backward);
}

void emit_step(ProgramBuilder& b, const Stage3& z) {
  const Engine& e = z.e;
  const std::int64_t p = z.layout.trainable;
  b.begin_phase(Phase::step);
  b.free(Category::gathered_parameters, z.gather.persistent_bytes());
  if (!z.offload_optimizer) {
    if (z.plan.precision.params == DType::f16) b.transient(Category::workspace, (1 + e.g) * p);
    b.transient(Category::workspace, 8 * z.layout.largest);  // the norm is taken in double
    const std::int64_t flat = e.g * z.sub_group;             // cat of the sub-group's gradients
    const std::int64_t wide = e.g == 4 ? 0 : 4 * z.sub_group;
    b.alloc(Category::workspace, flat);
    b.alloc(Category::workspace, wide);
    b.free(Category::workspace, wide > 0 ? flat : 0);
    b.transient(Category::workspace, e.step_list_bytes * z.sub_group);
    b.free(Category::workspace, wide > 0 ? wide : flat);
    b.synchronize();  // the norm is read by the host
    b.compute({sweep(2.0 * static_cast<double>((e.m + e.s + e.g) * p), DType::f32)});
  } else {
    // Gradients are on the host, and so is their norm.
    const bool nvme = z.zero.offload_optimizer.device == OffloadDevice::nvme;
    b.copy(LinkKind::host, false, 4 * p, "fp32 gradients to the host");
    if (nvme) {
      b.copy(LinkKind::nvme, false, 4 * p, "gradients to NVMe");
      b.copy(LinkKind::nvme, true, 16 * p, "optimizer states from NVMe");
    }
    b.host_optimizer(HostOptimizer::deepspeed, p);
    if (nvme) b.copy(LinkKind::nvme, false, 12 * p, "optimizer states to NVMe");
    b.copy(LinkKind::host, true, e.b * p, "updated parameters from the host");
  }
  if (e.ranks > 1 && z.gather.persistent_bytes() > 0)
    b.collective(Collective::all_gather, z.gather.persistent_bytes(),
                 "persistent parameter all-gather");
  const std::int64_t gathered = z.gather.persistent_bytes();
  b.alloc(Category::gathered_parameters, gathered);
  b.transient(Category::gathered_parameters, (z.gather.coalesced_factor() - 1) * gathered);
  b.end_phase(Phase::step);
}

}  // namespace

Program lower_stage3(const Model& model, const Plan& plan, const ModelRun& run,
                     const Engine& engine) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const Stage3 z(model, plan, run, engine);
  const Engine& e = engine;
  const std::int64_t p = z.layout.trainable;

  if (!z.offload_param)
    b.resident(Category::parameters, checked_mul(e.b, checked_add(p, z.layout.frozen)));
  add_common_residents(b, plan);
  b.resident(Category::communication_buffers,
             z.zero.contiguous_gradients
                 ? checked_mul(e.c * e.communication_dtypes, z.zero.reduce_bucket_size)
                 : 0);
  if (!z.offload_optimizer) {
    b.resident(Category::gradients, e.g * p);
    b.resident(Category::master_parameters, e.m * p);
  }
  for (const Event& r : program.resident) program.model_bytes += r.bytes;
  if (!z.offload_optimizer) b.resident(Category::optimizer_states, e.s * p);
  b.resident(Category::gathered_parameters, z.gather.persistent_bytes());
  if (z.offload_optimizer || z.offload_param) {
    program.host = offloaded_stage3(model, plan, e, z.layout, z.sub_group);
  }

  const std::vector<Stretch> forward = cut_forward(z);
  const std::vector<Stretch> backward = cut_backward3(z);
  // Every micro-batch is alike: gradients accumulate in the flat buffer.
  b.begin_repeat(plan.workload.gradient_accumulation);
  emit_micro_batch(b, z, forward, backward);
  b.end_repeat();
  emit_step(b, z);
  return program;
}

}  // namespace shardplan
