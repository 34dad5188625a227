#include "frameworks/fsdp1/flat_shards.h"

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
  return {
      plan.framework.fsdp1.sharding_strategy == Fsdp1Strategy::no_shard ? 1 : plan.shard_ranks(),
      originals ? kAlignment / size_of(plan.precision.compute) : 0};
}

}  // namespace

Fsdp1::Fsdp1(const Model& model_, const Plan& plan_, const ModelRun& run_)
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

std::int64_t Fsdp1::kept() const {
  if (!options.keep_low_precision_grads) return o;
  return sharded ? c : r;
}

std::int64_t Fsdp1::largest_gathered() const {
  std::int64_t largest = 0;
  for (const FlatUnit& u : units.blocks) largest = std::max(largest, gathered_bytes(u));
  return largest;
}

void Fsdp1::unshard(ProgramBuilder& b, const FlatUnit& u) const {
  b.host_work(Issue::hook, 1);
  const std::int64_t whole = gathered_bytes(u);
  if (!sharded) return b.alloc(Category::gathered_parameters, whole, kShardPool);
  const std::int64_t cast = casts() ? bytes(u.shard, c) : 0;
  const std::int64_t brought = options.cpu_offload ? shard_bytes(u) : 0;
  b.alloc(Category::communication_buffers, cast, kShardPool);
  if (brought > 0) {
    b.alloc(Category::communication_buffers, brought, kShardPool);
    b.fetch_ahead(LinkKind::host, u.shard * o, "parameter shards to the GPU");
  }
  if (casts()) b.free(Category::communication_buffers, brought, kShardPool);
  if (options.limit_all_gathers) b.throttle(kFreeEvents, kGathersInFlight, true);
  b.alloc(Category::gathered_parameters, whole, kUnshardPool);
  b.gather_ahead(u.gathered() * c, "parameter all-gather", group());
  // The gather reads what was made on another stream.
  b.free_used_on(Stream::communication, Category::communication_buffers, casts() ? cast : brought,
                 kShardPool);
}

void Fsdp1::release(ProgramBuilder& b, const FlatUnit& u) const {
  b.free_used_on(Stream::compute, Category::gathered_parameters, gathered_bytes(u),
                 sharded ? kUnshardPool : kShardPool);
  if (sharded && options.limit_all_gathers) b.mark(Stream::compute, kFreeEvents);
}

}  // namespace shardplan
