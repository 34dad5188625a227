// The values that a rank saves, wherever they lie: on the device, in the host's memory or in a file
// of states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "checkpoint/shard_layout.h"
#include "engine/trainer.h"

namespace shardplan::validator {

/// Most bytes that leave the device at once.
inline constexpr std::int64_t kStagingBytes = std::int64_t{4} << 20;

/// Memory of the host through which values of the device go.
std::int64_t staging_bytes(const std::vector<SavedTensor>& tensors);

/// A piece of the `tensor`-th, from its byte `first` on.
using ReadPiece =
    std::function<void(std::size_t tensor, std::int64_t first, std::span<const std::byte> bytes)>;
/// `tensors`: a rank's, in the order of tensors_of(). `staging`: as many bytes as staging_bytes().
void read_values(Trainer& trainer, const std::vector<SavedTensor>& tensors,
                 std::span<std::byte> staging, const ReadPiece& visit);

/// All bytes of the `tensor`-th; they stay.
using StoredBytes = std::function<std::span<const std::byte>(std::size_t tensor)>;
/// The other way, into a trainer that has no values yet.
void write_values(Trainer& trainer, const std::vector<SavedTensor>& tensors,
                  const StoredBytes& stored);

}  // namespace shardplan::validator
