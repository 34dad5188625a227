#include "frameworks/fsdp2/backward.h"
#include "lowering/unit_hooks.h"
#include "trainers/description.h"

#include <algorithm>
#include <utility>

namespace shardplan {
namespace {

double sum(const Gradients& gradients) {
  std::int64_t bytes = 0;
  for (const UnshardedGradient& gradient : gradients) bytes += gradient.bytes;
  return static_cast<double>(bytes);
}

/// The one that a loop over a group's gradients leaves named, its last parameter's, until the
/// sharded gradients are made (_fsdp_collectives.py, foreach_reduce: `unsharded_grad`); null where
/// there is none, or no loop.
const UnshardedGradient* named_last(const Fsdp2Unit& group, const Gradients& gradients) {
  if (group.ranks == 1) return nullptr;
  const auto named = std::ranges::find(gradients, group.last_trained, &UnshardedGradient::id);
  return named == gradients.end() ? nullptr : &*named;
}

}  // namespace

void Fsdp2Backward::start(ProgramBuilder& b) {
  const Unit& root = f.units.root();
  if (gathers(root) && !root.tensors.empty()) {
    f.gather(b, root);
    f.copy_out(b, root);
    f.free_gather(b, root);
  }
  // The root's hook is its result's, the loss. Without parameters of its own it gathers nothing
  // ahead: a head in a unit apart does, whose result are the logits.
  const bool has_head = !repeats.empty() && !f.units.is_block(repeats.front().segment);
  waits_for_head = has_head && (root.tensors.empty() || f.plan.trainer->shards_ends_apart);
  if (!waits_for_head) gather_last_block(b);
}

/// The first pre-backward hook of a unit that stayed prefetches it.
void Fsdp2Backward::gather_last_block(ProgramBuilder& b) {
  waits_for_head = false;
  const auto next = std::find_if(repeats.begin(), repeats.end(), [&](const SegmentRepeat& s) {
    return f.units.is_block(s.segment) && f.units.of(s.segment) != nullptr;
  });
  if (next == repeats.end() || !gathers(*f.units.of(next->segment))) return;
  buffer = f.units.of(next->segment);
  f.gather(b, *buffer);
}

void Fsdp2Backward::enter(ProgramBuilder& b, std::size_t k) {
  if (waits_for_head && k > 0) gather_last_block(b);
  unit = f.units.of(repeats[k].segment);
  is_block = f.units.is_block(repeats[k].segment);
  ahead = is_block ? unit : nullptr;
  if (is_block && repeats[k].count == 1) {
    const auto next =
        std::find_if(repeats.begin() + static_cast<std::ptrdiff_t>(k) + 1, repeats.end(),
                     [&](const SegmentRepeat& s) { return f.units.of(s.segment) != nullptr; });
    ahead = next == repeats.end() ? nullptr : f.units.of(next->segment);
  }
  if (unit == nullptr || !gathers(*unit) || buffer == unit) return;
  f.gather(b, *unit);
  if (buffer != nullptr) f.free_gather(b, *buffer);
  buffer = unit;
}

void Fsdp2Backward::begin(ProgramBuilder& b) {
  gradients.clear();
  expert_gradients.clear();
  expert_tensors = 0;
  experts_done = false;
  if (unit == nullptr || !gathers(*unit)) return;
  f.copy_out_again(b, *unit);
  f.free_gather(b, *unit);
  buffer = ahead != nullptr && gathers(*ahead) ? ahead : nullptr;
  if (buffer != nullptr) f.gather(b, *buffer);
}

void Fsdp2Backward::fetch(ProgramBuilder& b, ModuleId) {
  if (waits_for_head) gather_last_block(b);
}

void Fsdp2Backward::gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
  if (waits_for_head) gather_last_block(b);
  if (unit != nullptr && !unit->experts.empty()) {
    const Unit& experts = unit->experts.front();
    if (f.units.is_expert(id)) return expert_gradient(b, experts, {id, bytes});
    const bool all = experts.trained_tensors > 0 && expert_tensors == experts.trained_tensors;
    if (all) finish_experts(b, experts);
  }
  // With `adds_whole` it is added to the parameter's own, in place.
  const GradientUse use = uses.arrive(b, id, bytes, turn.adds_whole && f.r == f.c);
  if (!waits(use)) (unit != nullptr ? gradients : root_gradients).push_back({id, bytes});
}

void Fsdp2Backward::end(ProgramBuilder& b) {
  if (unit == nullptr) return;
  for (const Unit& experts : unit->experts) finish_experts(b, experts);
  drop(b, *unit);
  finish(b, *unit, gradients);
}

void Fsdp2Backward::stop(ProgramBuilder& b) {
  if (buffer != nullptr) f.free_gather(b, *buffer);
  drop(b, f.units.root());
  finish(b, f.units.root(), root_gradients);
}

/// Each layer's own, which share their names.
void Fsdp2Backward::expert_gradient(ProgramBuilder& b, const Unit& experts,
                                    UnshardedGradient made) {
  ++expert_tensors;
  if (experts.apart) return keep_gradient(b, made.bytes);
  if (turn.adds_whole && f.r == f.c)
    b.transient(Category::gradients, made.bytes);
  else
    b.alloc(Category::gradients, made.bytes);
  expert_gradients.push_back(made);
}

/// Where it was made, in the parameter's type: that of the first micro-batch, to which others are
/// added.
void Fsdp2Backward::keep_gradient(ProgramBuilder& b, std::int64_t bytes) const {
  const std::int64_t kept = bytes / f.c * f.o;
  const std::int64_t cast = f.o == f.c ? 0 : bytes;
  b.alloc(Category::gradients, cast);
  if (turn.first_reduction && !turn.adds_whole)
    b.alloc(Category::gradients, kept);
  else
    b.transient(Category::gradients, kept);
  b.free(Category::gradients, cast);
}

/// Their backward pass is over when others' gradients follow; frozen ones stay to the end.
void Fsdp2Backward::finish_experts(ProgramBuilder& b, const Unit& experts) {
  if (std::exchange(experts_done, true)) return;
  drop(b, experts);
  if (!experts.apart) finish(b, experts, expert_gradients);
}

/// `made`: gradients in the compute type that this micro-batch made.
void Fsdp2Backward::finish(ProgramBuilder& b, const Unit& g, const Gradients& made) {
  Gradients reduced = made;
  for (UnshardedGradient& gradient : reduced) gradient.bytes = gradient.bytes / f.c * f.r;
  if (f.r != f.c && !made.empty() && (turn.adds_whole || !turn.reduces)) {
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (!turn.adds_whole) b.alloc(Category::gradients, reduced[i].bytes);
      b.free(Category::gradients, made[i].bytes);
    }
    const double moved = sum(made) + (turn.adds_whole ? 2 : 1) * sum(reduced);
    b.compute({sweep(moved, f.plan.precision.compute, g.trained_tensors)});
  }
  if (turn.reduces)
    reduce(b, g, turn.adds_whole ? reduced : made);
  else
    whole[&g] = std::move(reduced);
}

void Fsdp2Backward::reduce(ProgramBuilder& b, const Unit& g, const Gradients& unsharded) {
  if (g.trained == 0) return;  // nothing of it trains
  if (reducing != nullptr) b.free(Category::communication_buffers, f.reduce_bytes(*reducing));
  reducing = &g;
  b.alloc(Category::communication_buffers, f.reduce_bytes(g));
  b.host_work(Issue::hook, kHooksOfUnit);
  b.compute({sweep(static_cast<double>(g.trained_bytes + f.reduce_bytes(g)),
                   f.plan.precision.compute, g.trained_tensors)});
  const UnshardedGradient* named = named_last(g, unsharded);
  for (const UnshardedGradient& gradient : unsharded)
    if (&gradient != named) b.free(Category::gradients, gradient.bytes);
  if (g.ranks > 1)
    b.collective(Collective::reduce_scatter, g.trained * f.r, "gradient reduce-scatter", 1,
                 g.group);
  if (f.copies > 1)
    b.collective(Collective::all_reduce, g.trained / g.ranks * f.r,
                 "gradient all-reduce over copies", 1, Group::replica);
  const std::int64_t part = f.gradient_bytes(g);
  const std::int64_t reduced = f.reduced_bytes(g);
  const bool offloads = f.plan.framework.fsdp2.cpu_offload;
  b.alloc(Category::communication_buffers, reduced, kReducePool);
  if (offloads) b.copy(LinkKind::host, false, part, "gradient shards to the host");
  if (turn.first_reduction && !offloads) {
    b.alloc(Category::gradients, part, kReducePool);
  } else {
    b.transient(Category::gradients, part, kReducePool);
  }
  b.free(Category::communication_buffers, reduced, kReducePool);
  b.alloc(Category::communication_buffers, f.summed_bytes(g, turn.first_reduction), kReducePool);
  if (named != nullptr) b.free(Category::gradients, named->bytes);
}

void Fsdp2Backward::finish_reductions(ProgramBuilder& b) {
  if (reducing != nullptr) b.free(Category::communication_buffers, f.reduce_bytes(*reducing));
  b.wait(Stream::communication);
  b.free(Category::communication_buffers,
         f.of_all([&](const Unit& g) { return f.summed_bytes(g, turn.first_reduction); }),
         kReducePool);
}

std::vector<SegmentRepeat> backward_repeats(const Fsdp2& f,
                                            const std::vector<SegmentRepeat>& forward) {
  std::vector<SegmentRepeat> backward = forward_repeats(f, forward);
  std::reverse(backward.begin(), backward.end());
  return backward;
}

}  // namespace shardplan
