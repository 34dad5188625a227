// A rank's shards of the parameters where they are not on its device: all of them in pinned memory,
// or in a file, from which they come to pinned memory ahead of their use.
#pragma once

#include <memory>
#include <vector>

#include "engine/runtime.h"

namespace shardplan::validator {

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
  /// What reads the unit that was looked at last is enqueued on Stream::to_device.
  virtual void sending(int unit) = 0;
  /// Will be looked at or taken, after another unit: begins to read it.
  virtual void expect(int unit) = 0;
  /// Waits until all that was kept is where it stays. Throws StorageError.
  virtual void settle() = 0;
};

std::unique_ptr<HostShards> make_resident_shards(Runtime& runtime, const std::vector<Unit>& units,
                                                 const Sharding& sharding, DType dtype);

/// In a file. Units share a pinned buffer that share a slot for gathered parameters (slots.h).
std::unique_ptr<HostShards> make_swapped_shards(Runtime& runtime, const std::vector<Unit>& units,
                                                const Sharding& sharding, DType dtype, bool tied);

}  // namespace shardplan::validator
