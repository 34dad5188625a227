#include "plan/plan.h"

#include "frameworks/registry.h"

namespace shardplan {

bool Plan::recomputes_blocks() const {
  return checkpointing == Checkpointing::full ||
         (checkpointing == Checkpointing::selective && traits_of(*this).selective_runs_blocks);
}

std::int64_t Plan::shard_ranks() const {
  return traits_of(*this).shard_ranks(*this);
}

bool Plan::prepares_kbit() const {
  // An engine that keeps master weights casts the module to 16 bits, whatever it finds.
  return workload.lora && workload.lora->prepare_kbit.value_or(false) &&
         !traits_of(*this).keeps_master;
}

DType Plan::kept_type() const {
  return prepares_kbit() ? DType::f32 : precision.params;
}

}  // namespace shardplan
