// Options of torch.distributed.fsdp.FullyShardedDataParallel (FSDP1).
#pragma once

#include <cstdint>
#include <optional>

#include "formats/dtype.h"
#include "saving/rules.h"

namespace shardplan {

/// torch.distributed.fsdp.ShardingStrategy.
enum class Fsdp1Strategy : std::uint8_t {
  full_shard,     ///< parameters are gathered for each pass
  shard_grad_op,  ///< they stay gathered from the forward to the backward pass
  hybrid_shard,   ///< FULL_SHARD in groups, with a copy of the states in each
  no_shard,       ///< whole states on every GPU
};

/// When the next unit's parameters are gathered in the backward pass (BackwardPrefetch).
enum class Fsdp1Prefetch : std::uint8_t { pre, post, none };

struct Fsdp1Options {
  Fsdp1Strategy sharding_strategy = Fsdp1Strategy::full_shard;
  /// GPUs that divide one copy of the states under HYBRID_SHARD; absent: those of a node.
  std::optional<std::int64_t> hybrid_shard_size;
  bool limit_all_gathers = true;  ///< two gathers in flight at most
  bool use_orig_params = false;   ///< the optimizer has the network's own tensors
  Fsdp1Prefetch backward_prefetch = Fsdp1Prefetch::pre;
  bool forward_prefetch = false;
  std::optional<DType> reduce_dtype;  ///< absent: the compute type
  bool keep_low_precision_grads = false;
  bool cpu_offload = false;
  /// False: accumulation is under no_sync(). Absent: what the trainer does.
  std::optional<bool> sync_each_batch;
  StateDictType state_dict_type = StateDictType::sharded;  ///< of checkpoints
};

}  // namespace shardplan
