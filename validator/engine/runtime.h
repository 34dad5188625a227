// What every part of a rank's engine works with.
#pragma once

#include "device/backend.h"
#include "device/communicator.h"
#include "device/host_compute.h"
#include "memory/arena.h"
#include "model/unit.h"
#include "storage/swap.h"

namespace shardplan::validator {

/// The host's part in a run that keeps states there.
struct HostSide {
  HostCompute& compute;
  Arena& pinned;         ///< what is copied to the device and from it
  Arena& pageable;       ///< what only the host's cores use
  Arena& nvme;           ///< what is in a file: addresses are offsets in it
  Swap* swap = nullptr;  ///< the file; null: nothing is there, or a dry run
  /// The same between the file and the device, without this memory; null: there is no such way.
  Swap* direct = nullptr;
};

struct Runtime {
  Backend& device;
  Communicator&
      ranks;  ///< with other samples or rows: ZeRO divides the states over them (ranks_of)
  Communicator& tensor;   ///< with the same samples and other parts of each layer
  Communicator& context;  ///< with other rows of the same samples, among `ranks` as well
  Communicator& stages;   ///< with the same samples and other layers, in their order
  Communicator& ends;     ///< of the first stage and the last, where they have a table in common
  Communicator& experts;  ///< with other rows and other experts of each layer
  Communicator& copies;   ///< with other rows and the same experts
  Arena& arena;
  HostSide* host = nullptr;  ///< of runs that offload

  /// The ranks that have the same parameters of a unit: ZeRO divides its states over them.
  Communicator& ranks_of(const Unit& unit) const { return unit.of_experts() ? copies : ranks; }
};

/// A collective in line with the computation: what is enqueued before makes its inputs, what is
/// enqueued afterwards finds its results. `event` is free again at once.
template <typename Collective>
void in_line(Backend& device, Event event, Collective&& collective) {
  device.record(event, Stream::compute);
  device.wait(Stream::communication, event);
  collective();
  device.record(event, Stream::communication);
  device.wait(Stream::compute, event);
}

/// Element i of a list by unit, slot or block, whose numbers have a sign.
template <typename List>
auto& at(List& list, std::int64_t i) {
  return list[static_cast<std::size_t>(i)];
}

/// What is divided among the ranks: at stage 1 optimizer states and masters, at 2 gradients as
/// well, at 3 parameters as well.
struct Sharding {
  int stage = 0;
  int world = 1;
  int rank = 0;
  // Among the ranks that have the same experts: all, where experts are not divided.
  int copies = 1;
  int copy = 0;

  /// What is frozen has no states: its parameters alone can be divided.
  bool undivided(const Unit& unit) const { return stage == 0 || (unit.frozen && stage < 3); }
  /// Parts that a unit's states are divided into.
  int parts(const Unit& unit) const {
    if (undivided(unit)) return 1;
    return unit.of_experts() ? copies : world;
  }
  int part(const Unit& unit) const {
    if (undivided(unit)) return 0;
    return unit.of_experts() ? copy : rank;
  }
  /// Elements of a unit with padding, so that all parts are equal and aligned.
  std::int64_t padded(const Unit& unit) const {
    return round_up(unit.numel, kElementAlignment * parts(unit));
  }
  std::int64_t shard(const Unit& unit) const { return padded(unit) / parts(unit); }
  /// Elements of a unit from here on are this rank's.
  std::int64_t first(const Unit& unit) const { return shard(unit) * part(unit); }
};

/// Losses, norms and row statistics: fp32, beside the reference's fp64.
constexpr DType statistic_type(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

}  // namespace shardplan::validator
