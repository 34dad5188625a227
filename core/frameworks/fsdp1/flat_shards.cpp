#include "frameworks/fsdp1/flat_shards.h"
#include "lowering/unit_hooks.h"

#include <algorithm>

namespace shardplan {
namespace {

/// _FreeEventQueue: with so many units let go and not waited for, the host waits for the first of
/// them before it gathers another.
constexpr std::int64_t kGathersInFlight = 2;
constexpr std::int32_t kFreeEvents = 0;  ///< their marks

FlatLayoutOptions layout_options(const Plan& plan) {
  constexpr std::int64_t kAlignment = 16;  // bytes, of TorchInductor
  const bool originals = plan.framework.fsdp1.use_orig_params;
  return {.ranks = plan.framework.fsdp1.sharding_strategy == Fsdp1Strategy::no_shard
                       ? 1
                       : plan.shard_ranks(),
          .aligned = originals ? kAlignment / size_of(plan.precision.compute) : 0,
          .each = size_of(plan.precision.params),
          .trained_apart = wraps_adapters(plan)};
}

}  // namespace

bool wraps_adapters(const Plan& plan) {
  return plan.workload.lora &&
         (!plan.framework.fsdp1.use_orig_params || plan.precision.params != DType::f32);
}

Fsdp1::Fsdp1(const Model& model_, const Plan& plan_, const ModelRun& run_)
    : model(model_),
      plan(plan_),
      run(run_),
      options(plan_.framework.fsdp1),
      units(flat_units(model_, run_, layout_options(plan_))),
      c(size_of(plan_.precision.compute)),
      r(options.reduce_dtype ? size_of(*options.reduce_dtype) : c),
      sharded(units.root.ranks > 1),
      reshards(sharded && options.sharding_strategy != Fsdp1Strategy::shard_grad_op) {}

std::int64_t Fsdp1::kept(const FlatUnit& u) const {
  if (!options.keep_low_precision_grads) return u.each;
  return sharded ? c : r;
}

std::int64_t Fsdp1::largest_gathered() const {
  std::int64_t largest = 0;
  for (const FlatUnit& u : units.blocks) {
    std::int64_t all = gathered_bytes(u);
    for (const FlatUnit& leaf : u.nested) all += gathered_bytes(leaf);
    largest = std::max(largest, all);
  }
  return largest;
}

void Fsdp1::unshard(ProgramBuilder& b, const FlatUnit& u) const {
  gather(b, u, options.limit_all_gathers);
  for (const FlatUnit& leaf : u.nested) gather(b, leaf, false);
}

void Fsdp1::release(ProgramBuilder& b, const FlatUnit& u) const {
  for (const FlatUnit& leaf : u.nested) let_go(b, leaf);
  let_go(b, u);
  if (sharded && options.limit_all_gathers) b.mark(Stream::compute, kFreeEvents);
}

void Fsdp1::gather(ProgramBuilder& b, const FlatUnit& u, bool limited) const {
  b.host_work(Issue::hook, sharded ? kHooksOfUnit : 1);
  const std::int64_t whole = gathered_bytes(u);
  if (!sharded) return b.alloc(Category::gathered_parameters, whole, kShardPool);
  const std::int64_t cast = casts(u) ? bytes(u.shard, c) : 0;
  const std::int64_t brought = options.cpu_offload ? shard_bytes(u) : 0;
  b.alloc(Category::communication_buffers, cast, kShardPool);
  if (brought > 0) {
    b.alloc(Category::communication_buffers, brought, kShardPool);
    b.fetch_ahead(LinkKind::host, u.shard * u.each, "parameter shards to the GPU");
  }
  if (casts(u)) b.free(Category::communication_buffers, brought, kShardPool);
  if (limited) b.throttle(kFreeEvents, kGathersInFlight, true);
  b.alloc(Category::gathered_parameters, whole, kUnshardPool);
  b.gather_ahead(u.gathered() * c, "parameter all-gather", group());
  // The gather reads what was made on another stream.
  b.free_used_on(Stream::communication, Category::communication_buffers, casts(u) ? cast : brought,
                 kShardPool);
}

void Fsdp1::let_go(ProgramBuilder& b, const FlatUnit& u) const {
  b.free_used_on(Stream::compute, Category::gathered_parameters, gathered_bytes(u),
                 sharded ? kUnshardPool : kShardPool);
}

}  // namespace shardplan
