// PyTorch FSDP1: a flat parameter for each block and one for the rest, gathered before it is used
// (torch/distributed/fsdp/_runtime_utils.py, _flat_param.py of PyTorch 2.11). docs/sharding.md
// derives what is allocated.
#include "frameworks/fsdp1/lower.h"

#include <algorithm>

#include "frameworks/deepspeed/engine.h"
#include "frameworks/fsdp1/flat_units.h"
#include "lowering/library_workspaces.h"
#include "lowering/micro_batches.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/optimizer_memory.h"
#include "lowering/tensors.h"

namespace shardplan {
namespace {

// Streams that allocate: _unshard_stream with _pre_unshard_stream, and _post_backward_stream.
constexpr Stream kUnshardPool = Stream::copy;
constexpr Stream kReductionPool = Stream::communication;

/// One micro-batch among those of a step.
struct Turn {
  bool syncs = true;            ///< gradients are reduced
  bool first_reduced = true;    ///< and nothing has been before
  bool adds_whole = false;      ///< whole gradients of earlier ones are there (no_sync)
  bool finds_gathered = false;  ///< SHARD_GRAD_OP under no_sync leaves parameters gathered
};

FlatLayoutOptions layout_options(const Plan& plan) {
  constexpr std::int64_t kAlignment = 16;  // bytes, of TorchInductor
  const bool originals = plan.framework.fsdp1.use_orig_params;
  return {
      plan.framework.fsdp1.sharding_strategy == Fsdp1Strategy::no_shard ? 1 : plan.shard_ranks(),
      originals ? kAlignment / size_of(plan.precision.compute) : 0};
}

struct Fsdp1 {
  const Model& model;
  const Plan& plan;
  const ModelRun& run;
  const Fsdp1Options& options;
  FlatUnits units;
  std::int64_t c, r, o;  ///< bytes an element: compute, reduction, sharded original
  bool sharded;          ///< a world of one GPU is NO_SHARD (_init_utils.py)
  bool reshards;         ///< after the forward pass

  Fsdp1(const Model& model_, const Plan& plan_, const ModelRun& run_)
      : model(model_),
        plan(plan_),
        run(run_),
        options(plan_.framework.fsdp1),
        units(flat_units(model_, run_, layout_options(plan_))),
        c(size_of(plan_.precision.compute)),
        r(options.reduce_dtype ? size_of(*options.reduce_dtype) : c),
        o(size_of(plan_.precision.params)),
        sharded(units.root.ranks > 1),
        reshards(sharded && options.sharding_strategy != Fsdp1Strategy::shard_grad_op) {}

  bool casts() const { return plan.precision.compute != plan.precision.params; }
  Group group() const { return plan.copies() > 1 ? Group::shard : Group::data; }
  static std::int64_t bytes(std::int64_t elements, std::int64_t each) {
    return round_up(checked_mul(elements, each), kAllocationUnit);
  }
  std::int64_t shard_bytes(const FlatUnit& u) const { return bytes(u.shard, o); }
  /// Of what a unit computes with while it is gathered; 0: its own parameters.
  std::int64_t gathered_bytes(const FlatUnit& u) const {
    return sharded || casts() ? bytes(u.gathered(), c) : 0;
  }
  /// A reduced gradient's element, as the optimizer finds it: cast for it where gradients stay
  /// low, and of NO_SHARD as it was reduced.
  std::int64_t kept() const {
    if (!options.keep_low_precision_grads) return o;
    return sharded ? c : r;
  }

  template <typename Bytes>
  std::int64_t of_all(Bytes&& bytes_of) const {
    std::int64_t sum = bytes_of(units.root);
    for (std::size_t s = 0; s < units.blocks.size(); ++s)
      sum += units.repeats[s] * bytes_of(units.blocks[s]);
    return sum;
  }
  std::int64_t largest_gathered() const {
    std::int64_t largest = 0;
    for (const FlatUnit& u : units.blocks) largest = std::max(largest, gathered_bytes(u));
    return largest;
  }

  /// The shard goes to the GPU and is cast, and the flat parameter is gathered. NO_SHARD only
  /// casts.
  void unshard(ProgramBuilder& b, const FlatUnit& u) const {
    b.host_work(Issue::hook, 1);
    const std::int64_t whole = gathered_bytes(u);
    if (!sharded) return b.alloc(Category::gathered_parameters, whole, kUnshardPool);
    const std::int64_t cast = casts() ? bytes(u.shard, c) : 0;
    const std::int64_t brought = options.cpu_offload ? shard_bytes(u) : 0;
    if (brought > 0) {
      b.alloc(Category::communication_buffers, brought, kUnshardPool);
      b.fetch_ahead(LinkKind::host, u.shard * o, "parameter shards to the GPU");
    }
    b.alloc(Category::communication_buffers, cast, kUnshardPool);
    if (casts()) b.free(Category::communication_buffers, brought, kUnshardPool);
    b.alloc(Category::gathered_parameters, whole, kUnshardPool);
    b.free(Category::communication_buffers, cast, kUnshardPool);
    if (!casts()) b.free(Category::communication_buffers, brought, kUnshardPool);
    b.gather_ahead(u.gathered() * c, "parameter all-gather", group());
  }
  void release(ProgramBuilder& b, const FlatUnit& u) const {
    b.free(Category::gathered_parameters, gathered_bytes(u), kUnshardPool);
  }
};

/// The repeats of a pass with the last iteration of each block on its own: what is prefetched
/// behind it is another unit, or nothing.
std::vector<SegmentRepeat> with_last_apart(const Fsdp1& f, const std::vector<SegmentRepeat>& all) {
  std::vector<SegmentRepeat> apart;
  for (const SegmentRepeat& s : all) {
    if (f.units.is_block(s.segment) && s.count > 1) {
      apart.push_back({s.segment, s.count - 1});
      apart.push_back({s.segment, 1});
    } else {
      apart.push_back(s);
    }
  }
  return apart;
}

/// The unit that runs after an iteration of repeat `k`; null behind the last block.
const FlatUnit* unit_after(const Fsdp1& f, const std::vector<SegmentRepeat>& repeats,
                           std::size_t k) {
  if (repeats[k].count > 1) return &f.units.blocks[repeats[k].segment];
  for (std::size_t i = k + 1; i < repeats.size(); ++i)
    if (f.units.is_block(repeats[i].segment)) return &f.units.blocks[repeats[i].segment];
  return nullptr;
}

/// The first block's of a pass; null where there are no blocks.
const FlatUnit* first_unit(const Fsdp1& f, const std::vector<SegmentRepeat>& repeats) {
  for (const SegmentRepeat& s : repeats)
    if (f.units.is_block(s.segment)) return &f.units.blocks[s.segment];
  return nullptr;
}

struct Fsdp1Forward {
  const Fsdp1& f;
  const std::vector<SegmentRepeat>& repeats;
  bool finds_gathered;
  const FlatUnit* block = nullptr;  ///< the unit of this repeat, null outside blocks
  const FlatUnit* next = nullptr;

  bool prefetches() const { return f.options.forward_prefetch && !finds_gathered; }
  void enter(ProgramBuilder&, std::size_t k) {
    const std::size_t s = repeats[k].segment;
    block = f.units.is_block(s) ? &f.units.blocks[s] : nullptr;
    next = block != nullptr ? unit_after(f, repeats, k) : nullptr;
  }
  void begin(ProgramBuilder& b) {
    if (block == nullptr || finds_gathered) return;
    if (!prefetches())
      f.unshard(b, *block);
    else if (next != nullptr)
      f.unshard(b, *next);
    b.wait(Stream::communication);
  }
  void end(ProgramBuilder& b) {
    if (block != nullptr && (f.reshards || !f.sharded)) f.release(b, *block);
  }
};

struct Fsdp1Backward {
  const Fsdp1& f;
  const std::vector<SegmentRepeat>& repeats;
  Turn turn;
  std::vector<bool> present;  ///< gradients that exist, by parameter
  const FlatUnit* block = nullptr;
  const FlatUnit* next = nullptr;
  bool first_block = true;
  std::int64_t pieces = 0, root_pieces = 0;  ///< gradients of single tensors

  /// Whether backward gathers, or casts, again.
  bool unshards() const { return f.reshards || !f.sharded; }
  bool prefetches(Fsdp1Prefetch when) const {
    return unshards() && f.options.backward_prefetch == when;
  }

  void enter(ProgramBuilder& b, std::size_t k) {
    const std::size_t s = repeats[k].segment;
    block = f.units.is_block(s) ? &f.units.blocks[s] : nullptr;
    next = block != nullptr ? unit_after(f, repeats, k) : nullptr;
    if (block == nullptr || !first_block) return;
    first_block = false;
    // Only the root's pre-backward hook, which comes first, prefetches the last block's.
    if (prefetches(Fsdp1Prefetch::post)) f.unshard(b, *block);
  }
  void begin(ProgramBuilder& b) {
    pieces = 0;
    if (block == nullptr) return;
    if (prefetches(Fsdp1Prefetch::none)) f.unshard(b, *block);
    if (prefetches(Fsdp1Prefetch::pre) && next != nullptr) f.unshard(b, *next);
    if (unshards()) b.wait(Stream::communication);
    widen(b, *block);
  }
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    const auto seen = present[static_cast<std::size_t>(id)];
    if (seen && block == nullptr) {  // of a tied weight: added in place
      b.transient(Category::gradients, bytes);
      return;
    }
    b.alloc(Category::gradients, bytes);
    (block != nullptr ? pieces : root_pieces) += bytes;
    present[static_cast<std::size_t>(id)] = true;
  }
  void end(ProgramBuilder& b) {
    if (block != nullptr) finish(b, *block, pieces);
  }

  /// keep_low_precision_grads: a reduced gradient of an earlier micro-batch is added to in the
  /// parameters' type (prepare_gradient_for_backward).
  void widen(ProgramBuilder& b, const FlatUnit& u) const {
    if (turn.first_reduced || f.kept() == f.o || !f.sharded) return;
    b.alloc(Category::gradients, Fsdp1::bytes(u.shard, f.o));
    b.free(Category::gradients, Fsdp1::bytes(u.shard, f.kept()));
  }

  /// All gradients of a unit are there: they become one tensor, its parameters go, and ranks
  /// reduce it.
  void finish(ProgramBuilder& b, const FlatUnit& u, std::int64_t of_tensors) {
    const std::int64_t flat = Fsdp1::bytes(u.numel, f.c);
    join(b, u, of_tensors, flat);
    if (!f.sharded || f.reshards || turn.syncs) f.release(b, u);
    if (prefetches(Fsdp1Prefetch::post) && next != nullptr && block == &u) f.unshard(b, *next);
    b.host_work(Issue::hook, 1);
    if (!turn.syncs) return;
    if (f.sharded)
      reduce_scatter(b, u);
    else
      all_reduce(b, u);
  }

  /// torch.split's backward: the tensors' gradients one after the other, zeros for padding and for
  /// what does not train. Added to what no_sync() left, if there is any.
  void join(ProgramBuilder& b, const FlatUnit& u, std::int64_t of_tensors,
            std::int64_t flat) const {
    std::int64_t zeros = 0;
    for (const std::int64_t n : u.padding) zeros += Fsdp1::bytes(n, f.c);
    for (const ParameterId id : u.parameters) {
      const Parameter& p = f.model.parameters[static_cast<std::size_t>(id)];
      if (!p.trainable) zeros += Fsdp1::bytes(p.numel, f.c);
    }
    b.alloc(Category::gradients, zeros);
    b.alloc(Category::gradients, flat);
    b.compute({sweep(2.0 * static_cast<double>(flat), f.plan.precision.compute, 1)});
    b.free(Category::gradients, checked_add(of_tensors, zeros));
    if (!turn.adds_whole) return;
    b.compute({sweep(3.0 * static_cast<double>(flat), f.plan.precision.compute, 1)});
    b.free(Category::gradients, flat);
  }

  /// _reduce_grad: cast to the reduction's type, padded to the ranks, reduced, and cast to the
  /// parameters' type.
  void reduce_scatter(ProgramBuilder& b, const FlatUnit& u) const {
    const std::int64_t flat = Fsdp1::bytes(u.numel, f.c);
    const std::int64_t wide = f.r != f.c ? Fsdp1::bytes(u.numel, f.r) : 0;
    const std::int64_t padded = u.gathered() != u.numel ? Fsdp1::bytes(u.gathered(), f.r) : 0;
    const std::int64_t reduced = Fsdp1::bytes(u.shard, f.r);
    // What is reduced is the gradient, or is cast to it.
    const bool is_gradient = f.r == f.o;
    const Category what = is_gradient ? Category::gradients : Category::communication_buffers;
    const std::int64_t part = is_gradient ? 0 : f.shard_bytes(u);
    b.alloc(Category::communication_buffers, wide, kReductionPool);
    b.alloc(Category::communication_buffers, padded, kReductionPool);
    b.alloc(what, reduced, kReductionPool);
    if (wide + padded > 0)
      b.compute({sweep(static_cast<double>((wide > 0 ? flat + wide : 0) + 2 * padded),
                       f.plan.precision.compute, 1)});
    b.collective(Collective::reduce_scatter, u.gathered() * f.r, "gradient reduce-scatter", 1,
                 f.group());
    if (f.plan.copies() > 1)
      b.collective(Collective::all_reduce, u.shard * f.r, "gradient all-reduce over copies", 1,
                   Group::replica);
    b.alloc(Category::gradients, part, kReductionPool);
    if (!turn.first_reduced)
      b.free(Category::gradients, is_gradient ? reduced : part, kReductionPool);
    if (!is_gradient) b.free(what, reduced, kReductionPool);
    if (f.options.cpu_offload)
      b.copy(LinkKind::host, false, f.shard_bytes(u), "gradient shards to the host");
    b.free(Category::communication_buffers, padded, kReductionPool);
    b.free(Category::communication_buffers, wide, kReductionPool);
    b.free(Category::gradients, flat);
  }

  /// _reduce_grad_no_shard: in place, in the reduction's type.
  void all_reduce(ProgramBuilder& b, const FlatUnit& u) const {
    const std::int64_t made = turn.first_reduced ? f.c : f.kept();
    const std::int64_t flat = Fsdp1::bytes(u.numel, f.c);
    const std::int64_t found = Fsdp1::bytes(u.numel, made);
    if (!turn.first_reduced) b.free(Category::gradients, flat);  // added to what is there
    const std::int64_t wide = f.r != made ? Fsdp1::bytes(u.numel, f.r) : 0;
    b.alloc(Category::gradients, wide, kReductionPool);
    if (f.plan.cluster.world() > 1)
      b.collective(Collective::all_reduce, u.numel * f.r, "gradient all-reduce", 1, Group::data);
    const std::int64_t last = f.kept() != f.r ? Fsdp1::bytes(u.numel, f.kept()) : 0;
    b.alloc(Category::gradients, last, kReductionPool);
    if (last > 0) b.free(Category::gradients, wide, kReductionPool);
    if (wide > 0 || last > 0) b.free(Category::gradients, found);
  }
};

/// A unit's parameters that have gone are still those of kernels that have not run
/// (record_stream), and the gathers in flight are two and the one underway (_limiter_utils.py): so
/// many buffers take turns.
void emit_buffers_in_turn(ProgramBuilder& b, const Fsdp1& f) {
  if (!f.reshards) return;
  std::int64_t blocks = 0;
  for (const std::int64_t n : f.units.repeats) blocks += n;
  const bool ahead = f.options.backward_prefetch == Fsdp1Prefetch::pre;
  const std::int64_t bytes = std::min<std::int64_t>(blocks, ahead ? 3 : 2) * f.largest_gathered();
  b.alloc(Category::gathered_parameters, bytes, kUnshardPool);
  b.free(Category::gathered_parameters, bytes, kUnshardPool);
}

/// The final callback of a backward pass (_finalize_params): gradients are cast for the optimizer,
/// or are on the host and go.
void emit_final_callback(ProgramBuilder& b, const Fsdp1& f, const Turn& turn) {
  b.wait(Stream::communication);
  if (!turn.syncs || !f.sharded) return;
  if (f.options.cpu_offload) {
    b.free(Category::gradients, f.of_all([&](const FlatUnit& u) { return f.shard_bytes(u); }),
           kReductionPool);
    return;
  }
  if (f.kept() == f.o) return;
  const auto narrow = [&](const FlatUnit& u, std::int64_t count) {
    if (count == 0) return;
    b.begin_repeat(count);
    b.alloc(Category::gradients, Fsdp1::bytes(u.shard, f.kept()));
    b.free(Category::gradients, f.shard_bytes(u), kReductionPool);
    b.end_repeat();
  };
  narrow(f.units.root, 1);
  for (std::size_t s = 0; s < f.units.blocks.size(); ++s)
    narrow(f.units.blocks[s], f.units.repeats[s]);
}

void emit_forward_pass(ProgramBuilder& b, const Fsdp1& f, const Turn& turn) {
  const std::vector<SegmentRepeat> repeats = with_last_apart(f, whole_segments(f.run));
  Fsdp1Forward hooks{f, repeats, turn.finds_gathered};
  b.begin_phase(Phase::forward);
  if (!turn.finds_gathered) {
    f.unshard(b, f.units.root);
    if (hooks.prefetches())
      if (const FlatUnit* first = first_unit(f, repeats)) f.unshard(b, *first);
    b.wait(Stream::communication);
  }
  emit_forward(b, f.model, f.run, repeats, hooks);
  if (!f.sharded) f.release(b, f.units.root);  // a shard's root stays for the backward pass
  b.end_phase(Phase::forward);
}

void emit_backward_pass(ProgramBuilder& b, const Fsdp1& f, const Turn& turn) {
  std::vector<SegmentRepeat> repeats = whole_segments(f.run);
  std::reverse(repeats.begin(), repeats.end());
  repeats = with_last_apart(f, repeats);
  Fsdp1Backward hooks{f, repeats, turn, std::vector<bool>(f.model.parameters.size(), false)};
  b.begin_phase(Phase::backward);
  if (!f.sharded) f.unshard(b, f.units.root);
  if (hooks.prefetches(Fsdp1Prefetch::pre))
    if (const FlatUnit* first = first_unit(f, repeats)) f.unshard(b, *first);
  hooks.widen(b, f.units.root);
  emit_backward(b, f.model, f.run, repeats, hooks);
  hooks.finish(b, f.units.root, hooks.root_pieces);
  emit_final_callback(b, f, turn);
  emit_buffers_in_turn(b, f);
  b.end_phase(Phase::backward);
}

void emit_micro_batches_of(ProgramBuilder& b, const Fsdp1& f) {
  const bool each = f.options.sync_each_batch;
  bool first = true;
  emit_micro_batches(b, f.plan.workload.gradient_accumulation, [&](bool last) {
    Turn turn;
    turn.syncs = each || last;
    turn.first_reduced = !each || first;
    turn.adds_whole = !each && !first;
    turn.finds_gathered = f.sharded && !f.reshards && !each && !first;
    emit_forward_pass(b, f, turn);
    emit_backward_pass(b, f, turn);
    first = false;
  });
}

/// What rank 0's optimizer updates.
std::vector<OwnedTensor> owned_by(const OptimizerTensors& tensors) {
  std::vector<OwnedTensor> owned;
  for (std::size_t i = 0; i < tensors.tensors.size(); ++i)
    owned.push_back({&tensors.tensors[i], tensors.tensors[i].numel, tensors.counts[i]});
  return owned;
}

/// Shards and their gradients are pinned; states are ordinary tensors.
void add_host_states(Program& program, const Fsdp1& f, std::int64_t states) {
  program.host.pinned =
      f.of_all([&](const FlatUnit& u) { return 2 * pinned_block(u.shard * f.o); });
  program.host.pageable = states;
}

/// Where the host is not held back, any number of gathers may be under way; and a gradient that is
/// being reduced keeps its block.
std::int64_t held_by_streams(const Fsdp1& f) {
  std::int64_t blocks = 0, gradient = 0;
  for (std::size_t s = 0; s < f.units.blocks.size(); ++s) {
    blocks += f.units.repeats[s];
    gradient = std::max(gradient, Fsdp1::bytes(f.units.blocks[s].numel, f.c));
  }
  constexpr std::int64_t kInTurn = 3;
  const bool runs_ahead = f.reshards && !f.options.limit_all_gathers;
  const std::int64_t more = runs_ahead ? std::max<std::int64_t>(0, blocks - kInTurn) : 0;
  return checked_add(gradient, checked_mul(more, f.largest_gathered()));
}

void emit_step(ProgramBuilder& b, const Fsdp1& f, const std::vector<OwnedTensor>& owned,
               const OptimizerMemory& optimizer) {
  b.begin_phase(Phase::step);
  if (f.options.cpu_offload) {
    b.host_optimizer(HostOptimizer::torch, ceil_div(f.model.trainable_count(), f.units.root.ranks));
  } else {
    // FullyShardedDataParallel.clip_grad_norm_: a norm of each tensor, in fp32.
    std::int64_t tensors = 0;
    for (const OwnedTensor& t : owned) tensors += t.count;
    if (f.plan.gradient_clipping > 0) b.transient(Category::workspace, tensors * kAllocationUnit);
    b.once(1, optimizer.tensors);
    emit_temporaries(b, optimizer.temporaries);
    if (f.plan.gradient_clipping > 0)
      b.compute(clipping_kernels(owned, f.plan.precision.gradients));
    b.compute(optimizer_kernels(owned, f.plan.optimizer, f.plan.precision, Given::tensors));
    b.free(Category::gradients, f.of_all([&](const FlatUnit& u) {
      return Fsdp1::bytes(f.sharded ? u.shard : u.numel, f.kept());
    }));
  }
  b.end_phase(Phase::step);
}

}  // namespace

Program lower_fsdp1(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const Fsdp1 f(model, plan, run);
  const OptimizerTensors tensors = optimizer_tensors(model, f.units, f.options.use_orig_params);
  const std::vector<OwnedTensor> owned = owned_by(tensors);
  const OptimizerMemory optimizer =
      optimizer_memory(owned, plan.optimizer, plan.precision.optimizer_states, Given::tensors);
  program.optimizer_source = states_source(plan.optimizer, Given::tensors);

  add_cublas_workspaces(b, plan.cluster.gpu);
  if (!f.options.cpu_offload) {
    b.resident(Category::parameters, f.shard_bytes(f.units.root));
    for (std::size_t s = 0; s < f.units.blocks.size(); ++s)
      if (f.units.is_block(s))
        b.resident(Category::parameters, f.shard_bytes(f.units.blocks[s]), f.units.repeats[s]);
  }
  b.resident(Category::other, batch_bytes(plan));
  program.model_bytes = total_bytes(program.resident);
  if (f.options.cpu_offload)
    add_host_states(program, f, optimizer.states);
  else
    b.resident(Category::optimizer_states, optimizer.states);
  program.host.pageable += optimizer.paged;
  if (plan.optimizer.kind->made_when_constructed && !f.options.cpu_offload)
    program.model_bytes += optimizer.states;
  program.held_at_most = held_by_streams(f);
  emit_micro_batches_of(b, f);
  emit_step(b, f, owned, optimizer);
  return program;
}

}  // namespace shardplan
