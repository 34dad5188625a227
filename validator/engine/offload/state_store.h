// Masters and moments of what a rank owns, bucket by bucket, as the host's cores update them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/offload/offload.h"
#include "engine/runtime.h"

namespace shardplan::validator {

struct BucketStates {
  Tensor master;  ///< absent where there is none
  Tensor first_moment, second_moment;
};

/// What states are, of how many elements of each unit.
struct StateKinds {
  std::optional<DType> master;
  DType moments = DType::f32;
};

class StateStore {
 public:
  virtual ~StateStore() = default;
  StateStore() = default;
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  /// A bucket whose states have no values yet, to be written.
  virtual BucketStates create(int unit, std::int64_t bucket) = 0;
  /// A bucket's states, to be read and written until keep().
  virtual BucketStates take(int unit, std::int64_t bucket) = 0;
  /// The bucket that was taken or created last has been written.
  virtual void keep() = 0;
  /// A bucket's states as they are between steps, to be read until let_go().
  virtual BucketStates look(int unit, std::int64_t bucket) = 0;
  virtual void let_go() = 0;
  /// Waits until all that was kept is where it stays. Throws StorageError.
  virtual void settle() = 0;
};

/// All of them in the host's memory.
std::unique_ptr<StateStore> make_resident_states(Runtime& runtime, const std::vector<Unit>& units,
                                                 const Sharding& sharding, const StateKinds& kinds);

/// In a file; a few buckets are in memory, on their way or being updated.
std::unique_ptr<StateStore> make_swapped_states(Runtime& runtime, const std::vector<Unit>& units,
                                                const Sharding& sharding, const StateKinds& kinds);

}  // namespace shardplan::validator
