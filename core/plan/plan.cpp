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

}  // namespace shardplan
