// FSDP2's gathers and what its passes share (torch/distributed/fsdp/_fully_shard of PyTorch 2.11).
#pragma once

#include "frameworks/fsdp2/units.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/segments.h"
#include "lowering/unit_hooks.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// The streams that allocate: all_gather_copy_in_stream and reduce_scatter_stream.
inline constexpr Stream kGatherPool = Stream::copy;
inline constexpr Stream kReducePool = Stream::communication;

/// FSDP2 at work over a model: what gathering a unit and reducing its gradients allocates.
struct Fsdp2 {
  using Unit = Fsdp2Unit;

  const Model& model;  ///< as it is sharded
  const Plan& plan;
  const ModelRun& run;
  std::int64_t copies;  ///< of the states, under hybrid sharding
  Fsdp2Units units;
  std::vector<std::int64_t> times;  ///< by segment: its layers here
  std::int64_t c, r, o;  ///< bytes an element: compute, reduction, trained sharded original

  Fsdp2(const Model& model_, const Plan& plan_, const ModelRun& run_,
        Fsdp2Wrap wrap = Fsdp2Wrap::blocks)
      : Fsdp2(model_, plan_, run_, whole_segments(run_), wrap) {}
  /// Of a part of the network: `repeats`, with the parameters of `model_`.
  Fsdp2(const Model& model_, const Plan& plan_, const ModelRun& run_,
        const std::vector<SegmentRepeat>& repeats, Fsdp2Wrap wrap = Fsdp2Wrap::blocks)
      : model(model_),
        plan(plan_),
        run(run_),
        copies(plan_.copies()),
        units(model_, plan_, run_, wrap),
        times(run_.segments.size(), 0),
        c(size_of(plan_.precision.compute)),
        r(plan_.framework.fsdp2.reduce_dtype ? size_of(*plan_.framework.fsdp2.reduce_dtype) : c),
        o(size_of(units.trained_type())) {
    for (const SegmentRepeat& repeat : repeats) times[repeat.segment] += repeat.count;
  }

  static std::int64_t gather_bytes(const Unit& g) { return round_up(g.gathered, kAllocationUnit); }
  /// All-gather: the cast shards and the buffer, on the copy-in stream; then copied out to separate
  /// tensors. A block's experts are gathered after it (torchtitan has both prefetched together).
  void gather(ProgramBuilder& b, const Unit& g) const {
    gather_one(b, g);
    for (const Unit& experts : g.experts) gather_one(b, experts);
  }
  void gather_one(ProgramBuilder& b, const Unit& g) const {
    if (g.gathered == 0) return;
    cast_narrow(b, g);
    const std::int64_t cast = round_up(g.cast, kAllocationUnit);
    b.alloc(Category::communication_buffers, cast, kGatherPool);
    b.alloc(Category::communication_buffers, gather_bytes(g), kGatherPool);
    b.free(Category::communication_buffers, cast, kGatherPool);
    b.host_work(Issue::hook, kHooksOfUnit);
    if (plan.framework.fsdp2.cpu_offload)
      b.fetch_ahead(LinkKind::host, g.shards, "parameter shards to the GPU");
    if (g.ranks > 1) b.gather_ahead(g.gathered, "parameter all-gather", g.group);
  }
  /// Shards that are gathered in 8 bits are cast by hooks, one by one and operation by operation in
  /// fp32; without scales of its own each asks all ranks for the largest value (torchao 0.18,
  /// float8/fsdp_utils.py, fsdp_pre_all_gather).
  void cast_narrow(ProgramBuilder& b, const Unit& g) const {
    if (g.narrow_tensors == 0) return;
    constexpr std::int64_t kScaledAndClamped = 8;  // bytes an element
    b.transient(Category::communication_buffers, kScaledAndClamped * g.widest_narrow, kGatherPool);
    const bool finds = plan.framework.fsdp2.float8_all_gather == Float8Gather::dynamic;
    const std::int32_t calls = finds ? 7 : 1;  // on numbers, and around the operations
    b.host_work(Issue::nested, calls * g.narrow_tensors);
    b.compute(narrow_kernels(g, finds));
    if (finds && g.ranks > 1)
      b.collective(Collective::all_reduce, kAllocationUnit * g.narrow_tensors,
                   "largest values of weights", g.narrow_tensors, g.group);
  }
  /// The same on the GPU: scaled, clamped and cast, where scales are found behind magnitudes and
  /// the largest of them. They run beside others, which their bytes hold up by as much.
  std::vector<Kernel> narrow_kernels(const Unit& g, bool finds) const {
    constexpr double kWide = 4;
    const auto elements =
        static_cast<double>(g.narrow_shards) / static_cast<double>(size_of(plan.precision.params));
    const auto kernel = [&](KernelKind kind, double bytes_each, std::int32_t runs) {
      Kernel k{.kind = kind, .issue = Issue::nested};
      k.calls = runs * g.narrow_tensors;
      k.elements = elements / g.narrow_tensors;
      k.bytes = bytes_each * k.elements;
      return k;
    };
    std::vector<Kernel> kernels;
    if (finds) {
      kernels.push_back(kernel(KernelKind::elementwise, 2 * kWide, 1));
      kernels.push_back(kernel(KernelKind::row_reduction, kWide, 1));
    }
    kernels.push_back(kernel(KernelKind::elementwise, 2 * kWide, 2));
    kernels.push_back(kernel(KernelKind::elementwise, kWide + 1, 1));
    return kernels;
  }
  void copy_out(ProgramBuilder& b, const Unit& g) const {
    copy_out_one(b, g);
    for (const Unit& experts : g.experts)
      if (!experts.tensors.empty()) copy_out_one(b, experts);
  }
  /// For the backward pass: what has gone since.
  void copy_out_again(ProgramBuilder& b, const Unit& g) const {
    copy_out_one(b, g);
    for (const Unit& experts : g.experts)
      if (experts.reshards && !experts.tensors.empty()) copy_out_one(b, experts);
  }
  void copy_out_one(ProgramBuilder& b, const Unit& g) const {
    for (const std::int64_t bytes : g.tensors) b.alloc(Category::gathered_parameters, bytes);
    b.wait(Stream::communication);
    b.compute({sweep(2.0 * static_cast<double>(g.unsharded), plan.precision.compute,
                     static_cast<std::int32_t>(g.tensors.size()))});
  }
  void free_gather(ProgramBuilder& b, const Unit& g) const {
    b.free(Category::communication_buffers, gather_bytes(g), kGatherPool);
    for (const Unit& experts : g.experts)
      b.free(Category::communication_buffers, gather_bytes(experts), kGatherPool);
  }
  /// Behind a forward pass: what is not kept for the backward pass goes.
  static void reshard(ProgramBuilder& b, const Unit& g) {
    if (!g.reshards) return;
    b.free(Category::gathered_parameters, g.unsharded);
    for (const Unit& experts : g.experts)
      if (experts.reshards) b.free(Category::gathered_parameters, experts.unsharded);
  }
  std::int64_t reduce_bytes(const Unit& g) const {
    return round_up(g.trained * r, kAllocationUnit);
  }
  std::int64_t gradient_bytes(const Unit& g) const {
    return round_up(g.trained / g.ranks * o, kAllocationUnit);
  }
  /// Over the root and all blocks, experts apart.
  template <typename Bytes>
  std::int64_t of_all(Bytes&& bytes) const {
    std::int64_t sum = bytes(units.root());
    for (std::size_t s = 0; s < run.segments.size(); ++s) {
      const Unit* unit = units.of(s);
      if (unit == nullptr) continue;
      sum += times[s] * bytes(*unit);
      for (const Unit& experts : unit->experts) sum += times[s] * bytes(experts);
    }
    return sum;
  }
  /// What a reduction leaves in the reduction's type, where that is not the gradient's own.
  std::int64_t reduced_bytes(const Unit& g) const {
    return r != o ? round_up(g.trained / g.ranks * r, kAllocationUnit) : 0;
  }
  /// Hybrid sharding sums what is reduced over the copies on another stream, and each group keeps
  /// that sum until the backward pass ends (_fsdp_param_group.py _all_reduce_state). `first`: the
  /// micro-batch whose sums, if they have the type, are the gradients themselves.
  std::int64_t summed_bytes(const Unit& g, bool first) const {
    if (copies == 1) return 0;
    if (r != o) return reduced_bytes(g);
    return first && !plan.framework.fsdp2.cpu_offload ? 0 : gradient_bytes(g);
  }
};

/// `repeats` as a forward pass meets them: a segment's first layer finds another unit's buffer, and
/// behind its last one nothing more is gathered; both are repeats of their own.
std::vector<SegmentRepeat> forward_repeats(const Fsdp2& f,
                                           const std::vector<SegmentRepeat>& repeats);

/// Forward, over forward_repeats(): a group's gather buffer stays until the next group's parameters
/// are copied out of its own (_fsdp_param_group.py, wait_for_unshard holds it until it returns).
struct Fsdp2Forward {
  using Unit = Fsdp2Unit;

  const Fsdp2& f;
  const std::vector<SegmentRepeat>& repeats;
  bool finds_kept = false;         ///< units that stay gathered behind a pass are so already
  const Unit* buffer = nullptr;    ///< whose gather buffer is alive
  const Unit* previous = nullptr;  ///< the same of the one before
  const Unit* unit = nullptr;      ///< the group of this repeat, null in the root
  bool is_block = false;
  bool gathers_next = false;  ///< another layer follows, whose gather is under way when one ends

  /// Before the first repeat: the root's own.
  void start(ProgramBuilder& b) {
    const Unit& root = f.units.root();
    if (root.tensors.empty() || (finds_kept && !root.reshards)) return;
    f.gather(b, root);
    f.copy_out(b, root);
    buffer = &root;
  }
  /// Behind the last one.
  void stop(ProgramBuilder& b) {
    if (buffer != nullptr) f.free_gather(b, *buffer);
    if (f.units.root().reshards) b.free(Category::gathered_parameters, f.units.root().unsharded);
  }
  void enter(ProgramBuilder& b, std::size_t k) {
    unit = f.units.of(repeats[k].segment);
    is_block = f.units.is_block(repeats[k].segment);
    if (unit != nullptr && finds_kept && !unit->reshards) unit = nullptr;
    if (unit == nullptr) return;
    gathers_next = repeats[k].count > 1 || is_same_segment(k, k + 1);
    previous = buffer;
    buffer = unit;
    if (k > 0 && is_same_segment(k - 1, k)) return;  // gathered when the layer before ended
    f.gather(b, *unit);
  }
  bool is_same_segment(std::size_t k, std::size_t other) const {
    return other < repeats.size() && repeats[k].segment == repeats[other].segment;
  }
  void begin(ProgramBuilder& b) {
    if (unit == nullptr) return;
    f.copy_out(b, *unit);
    if (previous != nullptr) f.free_gather(b, *previous);
  }
  void end(ProgramBuilder& b) {
    if (unit == nullptr) return;
    Fsdp2::reshard(b, *unit);
    if (is_block && gathers_next) f.gather(b, *unit);  // the next one's
  }
};

}  // namespace shardplan
