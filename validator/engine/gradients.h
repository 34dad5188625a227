// The gradients of a rank. Up to stage 1 all of them live here, and are reduced in place when the
// last micro-batch has made them. From stage 2 on only the rank's shard does: each micro-batch
// writes a unit's gradient into a slot, where it is reduced while the next unit is computed.
#pragma once

#include <optional>
#include <vector>

#include "engine/runtime.h"
#include "engine/slots.h"

namespace shardplan::validator {

struct OpenGradient {
  Tensor flat;              ///< the whole unit; empty: it is frozen
  bool accumulate = false;  ///< there is something to add to: an earlier micro-batch's
};

/// Where gradients are kept that do not stay on the device.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  virtual void begin_step() = 0;
  /// Copies this rank's part of a unit's gradient on Stream::to_host, when `ready` is done. `adds`:
  /// to what earlier micro-batches gave.
  virtual void take(int unit, const Tensor& shard, Event ready, bool adds) = 0;
};

class Gradients {
 public:
  /// `sink`: null: gradients stay here.
  Gradients(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding, DType dtype,
            bool tied, GradientSink* sink);

  void begin_step();
  /// Of which of the step's micro-batches the next passes are.
  void begin_micro_batch(bool first, bool last);
  /// Where kernels enqueued from now on write the unit's gradient.
  OpenGradient open(int unit);
  /// They have been enqueued: the reduction may begin.
  void close(int unit);
  /// Kernels enqueued from now on find the reduced gradients of the step in owned().
  void finish();

  /// The sum over all ranks and micro-batches: of the whole unit at stage 0, of the shard
  /// otherwise. Not where a sink has them; empty where the unit is frozen.
  Tensor owned(int unit) const { return at(owned_, unit); }

 private:
  struct ReduceBuffer {
    Tensor tensor;
    int last_unit = -1;       ///< whose gradient it held last: its padding is zero
    int pending = -1;         ///< the unit whose reduction is under way
    bool accumulate = false;  ///< what becomes of it
    Event reduced = 0;
  };
  ReduceBuffer& buffer_of(int unit) { return at(buffers_, at(slots_.of_unit, unit)); }
  void drain(ReduceBuffer& buffer);
  void reduce(int unit);
  void give(int unit);
  void join(const Unit& unit, const Tensor& flat);
  void join_ends(int unit);

  Runtime& runtime_;
  const std::vector<Unit>& units_;
  Sharding sharding_;
  SlotMap slots_;
  GradientSink* sink_;
  bool first_ = true, last_ = true;
  std::vector<Tensor> whole_, owned_;
  std::vector<ReduceBuffer> buffers_;  ///< stages 2 and 3
  Event written_ = 0, reduced_ = 0;
};

}  // namespace shardplan::validator
