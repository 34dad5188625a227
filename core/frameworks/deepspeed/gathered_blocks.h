// The blocks that stage 3's gathers take from the allocator and give back.
#pragma once

#include <cstdint>
#include <vector>

#include "frameworks/deepspeed/gather_schedule.h"

namespace shardplan {

/// Notes blocks while a micro-batch runs, for the first step or for those after it: the first one
/// records the order of modules, and gathers nothing ahead (partitioned_param_coordinator.py
/// reset_step).
class GatheredBlocks {
 public:
  enum class Steps : std::uint8_t { first, later };

  GatheredBlocks(const Stage3& z, Steps steps);

  void gather(const GatherCall& call);
  void arrive(const GatherCall& call);
  void settle(const GatherCall& call);
  /// `backward`: by that pass.
  void release(const ReleasedTensor& tensor, bool backward);
  /// The graph is gone: what its nodes held of the forward pass goes.
  void drop_held();
  /// Puts what was noted behind what `b` has.
  void put(ProgramBuilder& b);

 private:
  void make(const GatherCall& call);
  /// Bytes of each shard that a gather copies from the host to the GPU first.
  std::vector<std::int64_t> brought_shards(const GatherSet& set) const;
  std::int32_t name(ParameterId id, bool for_backward) const;
  std::int32_t name(int part) const;
  void alloc(Category category, std::int64_t bytes, std::int32_t name);
  void free(Category category, std::int64_t bytes, std::int32_t name);

  const Stage3& z_;
  Steps steps_;
  std::int32_t first_name_;
  Program part_;
  ProgramBuilder b_;
};

}  // namespace shardplan
