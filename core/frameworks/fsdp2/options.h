// Options of PyTorch's fully_shard (FSDP2).
#pragma once

#include <cstdint>
#include <optional>

#include "formats/dtype.h"

namespace shardplan {

struct Fsdp2Options {
  bool reshard_after_forward = true;
  std::optional<DType> reduce_dtype;
  bool cpu_offload = false;
  /// Hybrid sharding: GPUs that divide one copy of the states; the others have copies of their own.
  std::optional<std::int64_t> hybrid_shard_size;
  std::optional<bool> sync_each_batch;  ///< absent: what the trainer does
};

}  // namespace shardplan
