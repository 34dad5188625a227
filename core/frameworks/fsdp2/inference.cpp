#include "frameworks/fsdp2/inference.h"

#include "frameworks/fsdp2/gathers.h"
#include "lowering/inference/pass.h"
#include "lowering/packed_weights.h"
#include "lowering/tensors.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

Fsdp2Wrap wrap_of(const KeptWeightsPass& pass) {
  return !pass.trains && pass.plan.trainer->shards_frozen_whole ? Fsdp2Wrap::whole
                                                                : Fsdp2Wrap::blocks;
}

/// Units that reshard_after_forward leaves alone: gathered from the first pass on
/// (_fsdp_param_group.py, reshard).
std::int64_t kept_bytes(const Fsdp2& f) {
  return f.of_all([](const Fsdp2Unit& g) { return g.reshards ? 0 : g.unsharded; });
}

}  // namespace

std::int64_t emit_fsdp2_inference(ProgramBuilder& b, const KeptWeightsPass& pass) {
  const PackedWeights packed(pass.model, pass.plan.precision.compute);
  const Fsdp2 f(packed.model(), pass.plan, pass.run, wrap_of(pass));
  const std::vector<SegmentRepeat> repeats = whole_segments(pass.run);
  const std::vector<SegmentRepeat> forward = forward_repeats(f, repeats);
  Fsdp2Forward hooks{f, forward, pass.finds_kept};
  const Fsdp2Unit& root = f.units.root();
  const bool gathers_root = !root.tensors.empty() && (root.reshards || !pass.finds_kept);
  if (gathers_root) {
    f.gather(b, root);
    f.copy_out(b, root);
    hooks.buffer = &root;
  }
  emit_pass(b, f.model, pass.run, forward, hooks);
  if (hooks.buffer != nullptr) f.free_gather(b, *hooks.buffer);
  if (gathers_root) b.free(Category::gathered_parameters, root.unsharded);
  if (pass.finds_kept) return 0;
  for (std::size_t s = repeats.size(); s-- > 0;) {
    const Fsdp2Unit* unit = f.units.of(s);
    if (unit == nullptr || unit->reshards) continue;
    b.begin_repeat(repeats[s].count);
    b.free(Category::gathered_parameters, unit->unsharded);
    b.end_repeat();
  }
  return kept_bytes(f);
}

void add_fsdp2_frozen(Program& program, const KeptWeightsPass& pass) {
  const PackedWeights packed(pass.model, pass.plan.precision.compute);
  const Fsdp2 f(packed.model(), pass.plan, pass.run, wrap_of(pass));
  std::vector<Event> shards;
  f.model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    const std::int64_t bytes = checked_mul(f.units.shard_of(p), size_of(f.units.type_of(p)));
    append_tensors(shards, Category::parameters, round_up(bytes, kAllocationUnit), repeat);
  });
  if (pass.plan.framework.fsdp2.cpu_offload)
    program.host.pinned = checked_add(program.host.pinned, total_bytes(shards));
  else
    program.resident.insert(program.resident.end(), shards.begin(), shards.end());
  packed.append_whole_parts(program.resident);
  append_tensors(program.resident, Category::gathered_parameters, kept_bytes(f), 1);
}

}  // namespace shardplan
