// A rank's shards of the parameters where they are not on its device: all of them in pinned memory,
// or in a file, from which they come to pinned memory ahead of their use.
#pragma once

#include <memory>
#include <vector>

#include "engine/runtime.h"

namespace shardplan::validator {

/// How a unit's values come to the device.
enum class Arrival : std::uint8_t {
  enqueued,  ///< with what is enqueued on Stream::to_device
  landing,   ///< when land() returns
};

class HostShards {
 public:
  virtual ~HostShards() = default;
  HostShards() = default;
  HostShards(const HostShards&) = delete;
  HostShards& operator=(const HostShards&) = delete;

  /// A unit's values in pinned memory, to be read until another unit is asked for.
  virtual Tensor look(int unit) = 0;
  /// Room for a unit's values, all of which are to be written before keep().
  virtual Tensor create(int unit) = 0;
  /// A unit's values, to be read and written until keep().
  virtual Tensor take(int unit) = 0;
  /// A unit that was created or taken has been written.
  virtual void keep(int unit) = 0;
  /// Brings a unit's values to the device, where `to` is free after `vacant`.
  virtual Arrival bring(int unit, const Tensor& to, Event vacant) = 0;
  /// Waits for what is landing. Throws StorageError.
  virtual void land(int unit) = 0;
  /// A unit's first values, on the device after `written`. Returns when they may go from there.
  virtual void store(int unit, const Tensor& from, Event written) = 0;
  /// Will be brought or, with `changes`, taken, after another unit: begins to read it.
  virtual void expect(int unit, bool changes) = 0;
  /// Memory of the device that units are brought to.
  virtual void use(const Tensor& slot) = 0;
  /// Waits until all that was kept is where it stays. Throws StorageError.
  virtual void settle() = 0;
};

std::unique_ptr<HostShards> make_resident_shards(Runtime& runtime, const std::vector<Unit>& units,
                                                 const Sharding& sharding, DType dtype);

/// In a file. Units share a pinned buffer that share a slot for gathered parameters (slots.h).
/// Direct: a unit that is not in its buffer is read by the device, past it.
std::unique_ptr<HostShards> make_swapped_shards(Runtime& runtime, const std::vector<Unit>& units,
                                                const Sharding& sharding, DType dtype, bool tied,
                                                bool direct);

/// Copies a shard's first values to pinned memory, and waits.
inline void fetch_shard(Backend& device, const Tensor& to, const Tensor& from, Event written) {
  device.wait(Stream::to_host, written);
  device.fetch(to, from);
  device.record(written, Stream::to_host);
  device.await(written);
}

}  // namespace shardplan::validator
