// The parameters of a rank. Below stage 3 all of them are here; at stage 3 only a shard of each
// unit is, and a unit is gathered for the time that it is computed with.
#pragma once

#include <vector>

#include "engine/runtime.h"
#include "engine/slots.h"

namespace shardplan::validator {

class Weights {
 public:
  Weights(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding, DType dtype,
          bool tied);

  /// The unit's parameters for kernels that are enqueued from now on, until release().
  Tensor acquire(int unit);
  /// Kernels enqueued from now on do not read them.
  void release(int unit);
  /// Begins to gather a unit that will be needed soon.
  void prefetch(int unit);

  /// What this rank keeps up to date: all of the unit at stage 0, its shard otherwise.
  Tensor owned(int unit) const { return at(owned_, unit); }
  /// Everything of the unit that lies in this rank's memory between steps.
  Tensor resident(int unit) const { return at(resident_, unit); }
  /// The owned part has been written: the other ranks' parts are to be gathered.
  void updated(int unit);

 private:
  struct GatherBuffer {
    Tensor tensor;  ///< as large as the slot
    int holder = -1;
    Event filled = 0, vacant = 0;
  };
  GatherBuffer& buffer_of(int unit) { return at(buffers_, at(slots_.of_unit, unit)); }

  Runtime& runtime_;
  const std::vector<Unit>& units_;
  Sharding sharding_;
  SlotMap slots_;
  std::vector<Tensor> resident_, owned_;
  std::vector<Event> updated_;         ///< by unit, on the compute stream
  std::vector<Event> gathered_;        ///< by unit, on the communication stream; stages 1 and 2
  std::vector<GatherBuffer> buffers_;  ///< stage 3
};

}  // namespace shardplan::validator
