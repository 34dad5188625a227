#include "lowering/rank_model.h"

#include "parallel/shard.h"

namespace shardplan {

RankModel::RankModel(const Model& whole, const Plan& plan)
    : whole_(&whole),
      share_(is_sharded(plan) ? std::make_unique<const Model>(shard(whole, plan)) : nullptr),
      run_(run_segments(model(), plan)) {}

}  // namespace shardplan
