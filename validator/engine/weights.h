// The parameters of a rank. Below stage 3 all of them are here; at stage 3 only a shard of each
// unit is, on the device or on the host, and a unit is gathered for the time that it is computed
// with.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "engine/runtime.h"
#include "engine/slots.h"

namespace shardplan::validator {

class Weights {
 public:
  /// `on_host`: this rank's shards are kept in pinned memory of the host (stage 3).
  Weights(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding, DType dtype,
          bool tied, bool on_host);

  /// Called with a unit that is about to be read, before anything is.
  void before_use(std::function<void(int)> update) { before_use_ = std::move(update); }

  /// The unit's parameters for kernels that are enqueued from now on, until release().
  Tensor acquire(int unit);
  /// Kernels enqueued from now on do not read them.
  void release(int unit);
  /// Begins to gather a unit that will be needed soon.
  void prefetch(int unit);

  /// What this rank keeps up to date: all of the unit at stage 0, its shard otherwise.
  Tensor owned(int unit) const { return at(owned_, unit); }
  bool on_host() const { return on_host_; }
  /// Everything of the unit that lies in this rank's memory between steps; of shards on the host,
  /// where on the device they have their first values before keep().
  Tensor resident(int unit) const { return at(resident_, unit); }
  /// Kernels that write the unit's first values to resident() have been enqueued.
  void keep(int unit);
  /// What is enqueued on `by` has written the owned part: the other ranks' are to be gathered.
  void updated(int unit, Stream by);
  /// When the compute stream has last used the unit.
  Event released(int unit) const { return at(released_, unit); }

 private:
  struct GatherBuffer {
    Tensor tensor;  ///< as large as the slot
    int holder = -1;
    Event filled = 0, vacant = 0;
  };
  GatherBuffer& buffer_of(int unit) { return at(buffers_, at(slots_.of_unit, unit)); }
  /// This rank's place in the unit's gather buffer.
  Tensor place_of(int unit) const;

  Runtime& runtime_;
  const std::vector<Unit>& units_;
  Sharding sharding_;
  SlotMap slots_;
  bool on_host_;
  std::function<void(int)> before_use_ = [](int) {};
  std::vector<Tensor> resident_, owned_;
  std::vector<Event> updated_;         ///< by unit, on the stream that wrote it
  std::vector<Event> whole_;           ///< by unit, when all ranks' parts are there; below stage 3
  std::vector<Event> released_;        ///< by unit, on the compute stream
  std::vector<GatherBuffer> buffers_;  ///< stage 3
};

}  // namespace shardplan::validator
