#include "frameworks/fsdp1/inference.h"

#include "frameworks/fsdp1/flat_shards.h"
#include "lowering/inference/pass.h"
#include "lowering/packed_weights.h"
#include "lowering/tensors.h"
#include "program/pinned_memory.h"

namespace shardplan {
namespace {

/// Hooks of emit_pass, segment by segment.
struct Fsdp1Inference {
  static constexpr bool kOrdersKernels = true;
  const Fsdp1& f;
  bool finds_kept = false;
  const FlatUnit* block = nullptr;  ///< that this segment gathers; null outside blocks
  const FlatUnit* ahead = nullptr;  ///< gathered before its turn

  /// SHARD_GRAD_OP's blocks stay from the first pass on.
  bool is_there() const { return finds_kept && f.sharded && !f.reshards; }
  void enter(ProgramBuilder& b, std::size_t segment) {
    drop_ahead(b);
    block = f.units.is_block(segment) && !is_there() ? &f.units.blocks[segment] : nullptr;
    if (block == nullptr || !f.options.forward_prefetch) return;
    ahead = block;
    f.unshard(b, *block);
  }
  void begin(ProgramBuilder& b) {
    if (block == nullptr) return;
    f.unshard(b, *block);
    b.wait(Stream::communication);
  }
  void end(ProgramBuilder& b) {
    if (block != nullptr && (f.reshards || !f.sharded)) f.release(b, *block);
  }
  /// What was gathered ahead of the last block of a kind is the next kind's first.
  void drop_ahead(ProgramBuilder& b) {
    if (ahead != nullptr) f.release(b, *ahead);
    ahead = nullptr;
  }
};

/// Of the flat parameters that stay gathered behind a pass.
std::int64_t kept_bytes(const Fsdp1& f) {
  if (!f.sharded) return 0;
  std::int64_t root = f.gathered_bytes(f.units.root);
  for (const FlatUnit& leaf : f.units.root.nested) root += f.gathered_bytes(leaf);
  return f.reshards ? root : f.of_all([&](const FlatUnit& u) { return f.gathered_bytes(u); });
}

}  // namespace

std::int64_t emit_fsdp1_inference(ProgramBuilder& b, const KeptWeightsPass& pass) {
  const PackedWeights packed(pass.model, pass.plan.precision.compute);
  const Fsdp1 f(packed.model(), pass.plan, pass.run);
  Fsdp1Inference hooks{f, pass.finds_kept};
  const bool gathers_root = !f.sharded || !pass.finds_kept;
  if (gathers_root) {
    f.unshard(b, f.units.root);
    b.wait(Stream::communication);
  }
  emit_pass(b, f.model, pass.run, hooks);
  hooks.drop_ahead(b);
  if (gathers_root) f.release(b, f.units.root);
  if (pass.finds_kept || !f.sharded) return 0;
  for (std::size_t s = f.units.blocks.size(); s-- > 0 && !f.reshards;) {
    if (!f.units.is_block(s)) continue;
    b.begin_repeat(f.units.repeats[s]);
    f.release(b, f.units.blocks[s]);
    b.end_repeat();
  }
  return kept_bytes(f);
}

void add_fsdp1_frozen(Program& program, const KeptWeightsPass& pass) {
  const PackedWeights packed(pass.model, pass.plan.precision.compute);
  const Fsdp1 f(packed.model(), pass.plan, pass.run);
  f.for_each([&](const FlatUnit& u, std::int64_t count) {
    if (f.options.cpu_offload)
      program.host.pinned =
          checked_add(program.host.pinned, checked_mul(count, pinned_block(u.shard * u.each)));
    else
      append_tensors(program.resident, Category::parameters, f.shard_bytes(u), count);
  });
  packed.append_whole_parts(program.resident);
  append_tensors(program.resident, Category::gathered_parameters, kept_bytes(f), 1);
}

}  // namespace shardplan
