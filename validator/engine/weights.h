// The parameters of a rank. Below stage 3 all of them are here; at stage 3 only a shard of each
// unit is, on the device, on the host or in a file, and a unit is gathered for the time that it is
// computed with.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/offload/host_shards.h"
#include "engine/offload/offload.h"
#include "engine/runtime.h"
#include "engine/slots.h"

namespace shardplan::validator {

class Weights {
 public:
  /// `offload`: whether this rank's shards are kept on the host or in a file (stage 3).
  Weights(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding, DType dtype,
          bool tied, const Offload& offload);

  /// What an update that a unit waits for does with what is there.
  enum class Awaited : std::uint8_t { nothing, change, overwrite };

  /// `update` is called with a unit that is about to be read, before anything is; `awaited` says
  /// what it would do then.
  void before_use(std::function<void(int)> update, std::function<Awaited(int)> awaited) {
    before_use_ = std::move(update);
    awaited_ = std::move(awaited);
  }

  /// The unit's parameters for kernels that are enqueued from now on, until release().
  Tensor acquire(int unit);
  /// Kernels enqueued from now on do not read them.
  void release(int unit);
  /// Begins to gather a unit that will be needed soon.
  void prefetch(int unit);
  /// Will be prefetched after another unit: of a shard in a file, begins to read it.
  void expect(int unit);

  /// What this rank keeps up to date: all of the unit at stage 0, its shard otherwise. Not where
  /// shards are kept on the host.
  Tensor owned(int unit) const { return at(owned_, unit); }
  DType dtype() const { return dtype_; }
  /// This rank's shards where they are kept on the host or in a file; null: on the device.
  HostShards* shards() const { return shards_.get(); }
  /// Everything of the unit that lies in this rank's memory between steps; of shards on the host,
  /// where on the device they have their first values before keep().
  Tensor resident(int unit) const { return at(resident_, unit); }
  /// Room for all of a unit while its first values are made, if they are made at once: at stage 3
  /// its slot. This rank's part is to be at resident() before keep().
  Tensor room_for_all(int unit) const;
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
    bool landing = false;  ///< its unit's shard, which is to be gathered then
  };
  GatherBuffer& buffer_of(int unit) { return at(buffers_, at(slots_.of_unit, unit)); }
  void gather(int unit);
  /// This rank's place in the unit's gather buffer.
  Tensor place_of(int unit) const;

  Runtime& runtime_;
  const std::vector<Unit>& units_;
  Sharding sharding_;
  DType dtype_;
  SlotMap slots_;
  std::unique_ptr<HostShards> shards_;
  std::function<void(int)> before_use_ = [](int) {};
  std::function<Awaited(int)> awaited_ = [](int) { return Awaited::nothing; };
  std::vector<Tensor> resident_, owned_;
  std::vector<Event> updated_;         ///< by unit, on the stream that wrote it
  std::vector<Event> whole_;           ///< by unit, when all ranks' parts are there; below stage 3
  std::vector<Event> released_;        ///< by unit, on the compute stream
  std::vector<GatherBuffer> buffers_;  ///< stage 3
};

}  // namespace shardplan::validator
