// Options of PyTorch's fully_shard (FSDP2).
#pragma once

#include <cstdint>
#include <optional>

#include "formats/dtype.h"
#include "saving/rules.h"

namespace shardplan {

/// What is a unit of its own: each block, or nothing but the whole network (fully_shard on the root
/// alone).
enum class Fsdp2Wrap : std::uint8_t { blocks, whole };

/// Where the parameters of a tower are that does not train: in units of its layers, or in the
/// root's, gathered from the first pass to the end of the backward pass.
enum class FrozenTower : std::uint8_t { blocks, root };

/// How PyTorch's context_parallel gives each rank the others' keys and values (set_rotate_method).
enum class KeyRotation : std::uint8_t { allgather, alltoall };

/// How tokens reach the GPUs that have their experts.
enum class ExpertDispatch : std::uint8_t { alltoall, allgather };

/// Whether torchao's linears in fp8 are gathered as they multiply, and when the scales of their
/// weights are found: anew for each gather, or of all at once behind the optimizer's step
/// (torchao 0.18, float8/fsdp_utils.py).
enum class Float8Gather : std::uint8_t { none, dynamic, precomputed };

struct Fsdp2Options {
  Fsdp2Wrap units = Fsdp2Wrap::blocks;
  FrozenTower frozen_tower = FrozenTower::blocks;
  bool reshard_after_forward = true;
  std::optional<DType> reduce_dtype;
  bool cpu_offload = false;
  Float8Gather float8_all_gather = Float8Gather::none;
  /// Hybrid sharding: GPUs that divide one copy of the states; the others have copies of their own.
  std::optional<std::int64_t> hybrid_shard_size;
  KeyRotation rotation = KeyRotation::allgather;           ///< of a context degree
  ExpertDispatch dispatch = ExpertDispatch::alltoall;      ///< of an expert degree
  std::optional<bool> sync_each_batch;                     ///< absent: what the trainer does
  StateDictType state_dict_type = StateDictType::sharded;  ///< of checkpoints
};

}  // namespace shardplan
