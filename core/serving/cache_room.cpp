#include "serving/cache_room.h"

#include <algorithm>

#include "base/checked.h"
#include "rollout/engine.h"

namespace shardplan {

CacheRoom::CacheRoom(const RolloutEngine& engine, const Workload& workload)
    : shared_(workload.generation.shared_prefix / engine.block_tokens),
      own_(ceil_div(checked_add(workload.sequence_length, workload.generation.new_tokens),
                    engine.block_tokens) -
           shared_) {}

std::int64_t CacheRoom::blocks_of(std::int64_t sequences) const {
  return checked_add(shared_, checked_mul(sequences, own_));
}

std::int64_t CacheRoom::sequences_in(std::int64_t blocks) const {
  return std::max<std::int64_t>(blocks - shared_, 0) / own_;
}

}  // namespace shardplan
