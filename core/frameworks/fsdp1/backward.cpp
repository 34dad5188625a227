#include <algorithm>

#include "frameworks/fsdp1/passes.h"
#include "frameworks/fsdp1/unit_order.h"
#include "lowering/gradient_uses.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/unit_hooks.h"

namespace shardplan {
namespace {

/// The gradient of a single tensor.
struct Piece {
  ParameterId parameter;
  std::int64_t bytes;
};

/// The unit and those inside of it, as far as they have gradients.
std::vector<const FlatUnit*> trained_of(const FlatUnit& unit) {
  std::vector<const FlatUnit*> all;
  if (unit.trains) all.push_back(&unit);
  for (const FlatUnit& leaf : unit.nested)
    if (leaf.trains) all.push_back(&leaf);
  return all;
}

/// Those of `pieces` that belong to `part` of a unit: a unit inside has its own, the unit the rest.
std::vector<std::int64_t> pieces_of(const FlatUnit& unit, const FlatUnit& part,
                                    const std::vector<Piece>& pieces) {
  const auto has = [](const FlatUnit& u, ParameterId id) {
    return std::ranges::find(u.parameters, id) != u.parameters.end();
  };
  std::vector<std::int64_t> bytes;
  for (const Piece& piece : pieces) {
    const bool nested = std::ranges::any_of(
        unit.nested, [&](const FlatUnit& leaf) { return has(leaf, piece.parameter); });
    if (&part == &unit ? !nested : has(part, piece.parameter)) bytes.push_back(piece.bytes);
  }
  return bytes;
}

struct Fsdp1Backward {
  static constexpr bool kOrdersKernels = true;
  const Fsdp1& f;
  const std::vector<SegmentRepeat>& repeats;
  Fsdp1Turn turn;
  GradientUses uses;
  const FlatUnit* block = nullptr;
  const FlatUnit* next = nullptr;
  bool first_block = true;
  std::vector<Piece> pieces, root_pieces;

  /// Whether backward gathers, or casts, again.
  bool unshards() const { return f.reshards || !f.sharded; }
  bool prefetches(Fsdp1Prefetch when) const {
    return unshards() && f.options.backward_prefetch == when;
  }

  void enter(ProgramBuilder& b, std::size_t k) {
    const std::size_t s = repeats[k].segment;
    block = f.units.is_block(s) ? &f.units.blocks[s] : nullptr;
    next = block != nullptr ? unit_after(f.units, repeats, k) : nullptr;
    if (block == nullptr || !first_block) return;
    first_block = false;
    // Only the root's pre-backward hook, which comes first, prefetches the last block's.
    if (prefetches(Fsdp1Prefetch::post)) f.unshard(b, *block);
  }
  void begin(ProgramBuilder& b) {
    pieces.clear();
    if (block == nullptr) return;
    if (prefetches(Fsdp1Prefetch::none)) f.unshard(b, *block);
    if (prefetches(Fsdp1Prefetch::pre) && next != nullptr) f.unshard(b, *next);
    if (unshards()) b.wait(Stream::communication);
    widen(b, *block);
  }
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    if (!waits(uses.arrive(b, id, bytes, false)))
      (block != nullptr ? pieces : root_pieces).push_back({id, bytes});
  }
  void added(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.added(b, id, bytes); }
  void summed(ProgramBuilder& b, ParameterId id, std::int64_t bytes) { uses.summed(b, id, bytes); }
  void end(ProgramBuilder& b) {
    if (block != nullptr) finish(b, *block, pieces);
  }

  /// keep_low_precision_grads: a reduced gradient of an earlier micro-batch is added to in the
  /// parameters' type (prepare_gradient_for_backward).
  void widen(ProgramBuilder& b, const FlatUnit& unit) const {
    if (turn.first_reduced || !f.sharded) return;
    for (const FlatUnit* u : trained_of(unit)) {
      if (f.kept(*u) == u->each) continue;
      b.alloc(Category::gradients, f.shard_bytes(*u));
      b.free(Category::gradients, Fsdp1::bytes(u->shard, f.kept(*u)));
    }
  }

  /// All gradients of a unit are there: they become one tensor, its parameters go, and ranks
  /// reduce it.
  void finish(ProgramBuilder& b, const FlatUnit& u, const std::vector<Piece>& of_tensors) {
    const std::vector<const FlatUnit*> trained = trained_of(u);
    for (const FlatUnit* part : trained)
      join(b, *part, pieces_of(u, *part, of_tensors), Fsdp1::bytes(part->numel, f.c));
    if (!f.sharded || f.reshards || turn.syncs) f.release(b, u);
    if (prefetches(Fsdp1Prefetch::post) && next != nullptr && block == &u) f.unshard(b, *next);
    b.host_work(Issue::hook,
                (f.sharded ? kHooksOfUnit : 1) * (1 + static_cast<std::int32_t>(u.nested.size())));
    if (!turn.syncs) return;
    for (const FlatUnit* part : trained)
      if (f.sharded)
        reduce_scatter(b, *part);
      else
        all_reduce(b, *part);
  }

  /// torch.split's backward: the tensors' gradients one after the other, zeros for padding and for
  /// what does not train. Added to what no_sync() left, if there is any.
  void join(ProgramBuilder& b, const FlatUnit& u, std::vector<std::int64_t> parts,
            std::int64_t flat) const {
    const std::size_t made = parts.size();
    for (const std::int64_t n : u.padding) parts.push_back(Fsdp1::bytes(n, f.c));
    for (const ParameterId id : u.parameters) {
      const Parameter& p = f.model.parameters[static_cast<std::size_t>(id)];
      if (!p.trainable) parts.push_back(Fsdp1::bytes(p.numel, f.c));
    }
    for (std::size_t i = made; i < parts.size(); ++i) b.alloc(Category::gradients, parts[i]);
    b.alloc(Category::gradients, flat);
    b.compute({sweep(2.0 * static_cast<double>(flat), f.plan.precision.compute, 1)});
    for (const std::int64_t bytes : parts) b.free(Category::gradients, bytes);
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
    const bool is_gradient = f.r == u.each;
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
    b.free_used_on(kReductionPool, Category::gradients, flat);
  }

  /// _reduce_grad_no_shard: in place, in the reduction's type.
  void all_reduce(ProgramBuilder& b, const FlatUnit& u) const {
    const std::int64_t made = turn.first_reduced ? f.c : f.kept(u);
    const std::int64_t flat = Fsdp1::bytes(u.numel, f.c);
    const std::int64_t found = Fsdp1::bytes(u.numel, made);
    if (!turn.first_reduced) b.free(Category::gradients, flat);  // added to what is there
    const std::int64_t wide = f.r != made ? Fsdp1::bytes(u.numel, f.r) : 0;
    b.alloc(Category::gradients, wide, kReductionPool);
    if (f.plan.cluster.world() > 1)
      b.collective(Collective::all_reduce, u.numel * f.r, "gradient all-reduce", 1, Group::data);
    const std::int64_t last = f.kept(u) != f.r ? Fsdp1::bytes(u.numel, f.kept(u)) : 0;
    b.alloc(Category::gradients, last, kReductionPool);
    if (last > 0) b.free(Category::gradients, wide, kReductionPool);
    if (wide > 0 || last > 0) b.free_used_on(kReductionPool, Category::gradients, found);
  }
};

/// The final callback of a backward pass (_finalize_params): gradients are cast for the optimizer,
/// or are on the host and go.
void emit_final_callback(ProgramBuilder& b, const Fsdp1& f, const Fsdp1Turn& turn) {
  b.wait(Stream::communication);
  if (!turn.syncs || !f.sharded) return;
  if (f.options.cpu_offload) {
    b.free(Category::gradients, f.of_trained([&](const FlatUnit& u) { return f.shard_bytes(u); }),
           kReductionPool);
    return;
  }
  f.for_each([&](const FlatUnit& u, std::int64_t count) {
    if (!u.trains || f.kept(u) == u.each) return;
    b.begin_repeat(count);
    b.alloc(Category::gradients, Fsdp1::bytes(u.shard, f.kept(u)));
    b.free(Category::gradients, f.shard_bytes(u), kReductionPool);
    b.end_repeat();
  });
}

}  // namespace

void emit_backward_pass(ProgramBuilder& b, const Fsdp1& f, const Fsdp1Turn& turn) {
  std::vector<SegmentRepeat> repeats = whole_segments(f.run);
  std::reverse(repeats.begin(), repeats.end());
  repeats = with_last_apart(f.units, repeats);
  Fsdp1Backward hooks{f, repeats, turn, {f.model, f.run, repeats}};
  b.begin_phase(Phase::backward);
  if (!f.sharded) f.unshard(b, f.units.root);
  if (hooks.prefetches(Fsdp1Prefetch::pre))
    if (const FlatUnit* first = first_unit(f.units, repeats)) f.unshard(b, *first);
  hooks.widen(b, f.units.root);
  emit_backward(b, f.model, f.run, repeats, hooks);
  hooks.finish(b, f.units.root, hooks.root_pieces);
  emit_final_callback(b, f, turn);
  b.end_phase(Phase::backward);
}

}  // namespace shardplan
