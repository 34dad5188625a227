// What activation checkpointing does with the blocks of a network.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardplan {

/// Of every block: nothing; everything but what matrix products and attention return (PyTorch's
/// selective checkpointing with a policy of saving those); or everything. `selective_op` is
/// torchtitan's list of saved operations, in which every n-th product is computed again; `blocks`
/// computes some of the blocks again and leaves the others alone.
enum class Checkpointing : std::uint8_t { none, selective, full, selective_op, blocks };

/// The name used in job files.
constexpr std::string_view name_of(Checkpointing how) {
  switch (how) {
    case Checkpointing::none:
      return "none";
    case Checkpointing::selective:
      return "selective";
    case Checkpointing::full:
      return "full";
    case Checkpointing::selective_op:
      return "selective_op";
    case Checkpointing::blocks:
      break;
  }
  return "blocks";
}

/// What a policy with numbers says beside its name.
struct CheckpointShare {
  /// selective_op: each n-th product is computed again; blocks: each n-th block. 0: not said.
  std::int64_t every = 0;
  std::int64_t count = 0;  ///< blocks: the first ones; 0: not said
  bool offload = false;    ///< what is kept waits on the host
  bool operator==(const CheckpointShare&) const = default;
};

/// Whether hooks around the whole step move what autograd keeps to the host: TRL's and torchtune's
/// OffloadActivations, beside a stream of their own or within the step's (axolotl's "legacy").
enum class ActivationOffloading : std::uint8_t { none, streams, one_stream };

/// The name used in job files.
constexpr std::string_view name_of(ActivationOffloading how) {
  switch (how) {
    case ActivationOffloading::streams:
      return "streams";
    case ActivationOffloading::one_stream:
      return "one_stream";
    case ActivationOffloading::none:
      break;
  }
  return "none";
}

/// A policy and its numbers.
struct CheckpointChoice {
  Checkpointing how = Checkpointing::none;
  CheckpointShare share;
  bool operator==(const CheckpointChoice&) const = default;
};

/// Which blocks policy `blocks` computes again.
struct CheckpointedBlocks {
  CheckpointShare share;
  bool from_first = false;  ///< of each n blocks the first one; else the last one
  /// The block at `place`, counted from 0.
  constexpr bool has(std::int64_t place) const {
    if (share.every == 0) return place < share.count;
    return (place + (from_first ? 0 : 1)) % share.every == 0;
  }
  /// Each that is left alone is behind one of these.
  constexpr bool all_behind() const { return share.every == 2; }
};

/// torchtitan's: of its products every second one is computed again.
inline constexpr std::int64_t kUsualProductShare = 2;

}  // namespace shardplan
