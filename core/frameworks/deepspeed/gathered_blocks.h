// The blocks that stage 3's gathers take from the allocator and give back.
#pragma once

#include <cstdint>
#include <vector>

#include "frameworks/deepspeed/coordinator.h"

namespace shardplan {

/// Notes blocks while a micro-batch runs, for the first step or for those after it: the first one
/// records the order of modules, and gathers nothing ahead (partitioned_param_coordinator.py
/// reset_step).
class GatheredBlocks {
 public:
  enum class Steps : std::uint8_t { first, later };

  GatheredBlocks(const Stage3& z, const TensorTable& tensors, Steps steps);

  /// `number`: of the bucket, which no other has that is under way.
  void gather(const GatherBucket& bucket, std::size_t number);
  void arrive(const GatherBucket& bucket, std::size_t number);
  void settle(const GatherBucket& bucket, std::size_t number);
  void release(const std::vector<TensorId>& tensors);
  /// From here on the backward pass runs.
  void turn() { backward_ = true; }
  /// The micro-batch is over: what is there still goes.
  void finish();
  /// Puts what was noted behind what `b` has.
  void put(ProgramBuilder& b);

 private:
  struct Held {
    std::int32_t blocks = 0;
    bool from_forward = false;  ///< the newest was gathered in the forward pass
  };

  void make(const GatherBucket& bucket);
  void drop(TensorId t);
  /// Bytes of each shard that a gather copies from the host to the GPU first.
  std::vector<std::int64_t> brought_shards(const GatherSet& set) const;
  std::int32_t name(std::size_t bucket, int part) const;
  void alloc(Category category, std::int64_t bytes, std::int32_t name);
  void free(Category category, std::int64_t bytes, std::int32_t name);

  const Stage3& z_;
  const TensorTable& tensors_;
  Steps steps_;
  std::int32_t first_name_;
  Program part_;
  ProgramBuilder b_;
  std::vector<Held> held_;  ///< by tensor
  bool backward_ = false;
};

}  // namespace shardplan
