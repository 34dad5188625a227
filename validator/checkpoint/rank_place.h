// Where a rank is among those that divide a network: from its number alone, so that any rank can
// tell what another one saves.
#pragma once

#include "engine/runtime.h"
#include "job/engine_job.h"

namespace shardplan::validator {

struct RankPlace {
  int rank = 0;  ///< of the world
  NetworkRank network;
  Sharding sharding;
  int data_stride = 1;  ///< ranks of the world from one with other samples to the next
  int copy_stride = 1;  ///< and from one with the same experts to the next

  /// The rank that saves what this one has of a unit: itself, or the first of those that have all
  /// of it alike.
  int keeper(const Unit& unit) const;
};

/// As comm/groups.h numbers them.
RankPlace place_of(const EngineJob& job, int rank);

}  // namespace shardplan::validator
