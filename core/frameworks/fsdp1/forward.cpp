#include "frameworks/fsdp1/passes.h"
#include "frameworks/fsdp1/unit_order.h"

namespace shardplan {
namespace {

struct Fsdp1Forward {
  static constexpr bool kOrdersKernels = true;
  const Fsdp1& f;
  const std::vector<SegmentRepeat>& repeats;
  bool finds_gathered;
  const FlatUnit* block = nullptr;  ///< the unit of this repeat, null outside blocks
  const FlatUnit* next = nullptr;

  bool prefetches() const { return f.options.forward_prefetch && !finds_gathered; }
  void enter(ProgramBuilder&, std::size_t k) {
    const std::size_t s = repeats[k].segment;
    block = f.units.is_block(s) ? &f.units.blocks[s] : nullptr;
    next = block != nullptr ? unit_after(f.units, repeats, k) : nullptr;
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

}  // namespace

void emit_forward_pass(ProgramBuilder& b, const Fsdp1& f, const Fsdp1Turn& turn) {
  const std::vector<SegmentRepeat> repeats = with_last_apart(f.units, whole_segments(f.run));
  Fsdp1Forward hooks{f, repeats, turn.finds_gathered};
  b.begin_phase(Phase::forward);
  if (!turn.finds_gathered) {
    f.unshard(b, f.units.root);
    if (hooks.prefetches())
      if (const FlatUnit* first = first_unit(f.units, repeats)) f.unshard(b, *first);
    b.wait(Stream::communication);
  }
  emit_forward(b, f.model, f.run, repeats, hooks);
  if (!f.sharded) f.release(b, f.units.root);  // a shard's root stays for the backward pass
  b.end_phase(Phase::forward);
}

}  // namespace shardplan
