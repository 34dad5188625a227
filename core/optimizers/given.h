// How parameters reach an optimizer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardplan {

/// As what a framework hands parameters to the optimizer: as tensors of their own (one GPU, DDP),
/// as this rank's rows of each (FSDP2), or as vectors into which many were copied (ZeRO's
/// partitions, buckets of a distributed optimizer).
enum class Given : std::uint8_t { tensors, shards, flat };
inline constexpr std::size_t kGivenKinds = 3;

}  // namespace shardplan
