// Megatron-LM's contiguous buffers of parameters and gradients
// (megatron/core/distributed/param_and_grad_buffer.py).
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// A buffer, in elements. Parameters lie in it in the reverse of their order of registration.
struct GradientBuffer {
  std::int64_t elements = 0;  ///< padding included
  std::int64_t buckets = 0;
  std::vector<std::int64_t> shards;  ///< of the parameters that are in this rank's part of a bucket
};

/// A rank's place among those that share a buffer.
struct BufferPlaces {
  std::int64_t dense = 0, experts = 0;
};

/// The two buffers of a rank: dense parameters, whose gradients all data-parallel ranks add up, and
/// experts, which fewer ranks share.
struct GradientBuffers {
  GradientBuffer dense, experts;
  std::int64_t elements() const { return dense.elements + experts.elements; }
};

/// `ranks` and `expert_ranks` share the buffers. With the distributed optimizer parameters begin at
/// multiples of 64 elements, and buckets end at multiples of 128 and of the ranks. Each rank
/// updates an equal part of every bucket.
GradientBuffers gradient_buffers(const Model& own, const MegatronOptions& options,
                                 std::int64_t ranks, std::int64_t expert_ranks,
                                 const BufferPlaces& places = {});

}  // namespace shardplan
