#include "engine/weights.h"

namespace shardplan::validator {

Weights::Weights(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                 DType dtype, bool tied)
    : runtime_(runtime),
      units_(units),
      sharding_(sharding),
      slots_(map_slots(units, sharding, tied)) {
  for (const Unit& unit : units_) {
    const bool whole = sharding_.stage < 3;
    const std::int64_t numel = whole ? sharding_.padded(unit) : sharding_.shard(unit);
    const Tensor here =
        runtime_.arena.allocate(unit.name + ".parameters", Category::parameters, dtype, {numel});
    resident_.push_back(here);
    owned_.push_back(whole ? here.slice(sharding_.first(unit), sharding_.shard(unit)) : here);
    updated_.push_back(runtime_.device.new_event());
    gathered_.push_back(runtime_.device.new_event());
  }
  if (sharding_.stage < 3) return;
  for (const Slot& slot : slots_.slots)
    buffers_.push_back({runtime_.arena.allocate("gathered." + slot.name,
                                                Category::gathered_parameters, dtype, {slot.numel}),
                        -1, runtime_.device.new_event(), runtime_.device.new_event()});
}

Tensor Weights::acquire(int unit) {
  if (sharding_.stage < 3) {
    runtime_.device.wait(Stream::compute, at(gathered_, unit));
    return at(resident_, unit);
  }
  prefetch(unit);
  GatherBuffer& buffer = buffer_of(unit);
  runtime_.device.wait(Stream::compute, buffer.filled);
  return buffer.tensor.slice(0, sharding_.padded(at(units_, unit)));
}

void Weights::release(int unit) {
  if (sharding_.stage == 3) runtime_.device.record(buffer_of(unit).vacant, Stream::compute);
}

void Weights::prefetch(int unit) {
  if (sharding_.stage < 3) return;
  GatherBuffer& buffer = buffer_of(unit);
  if (buffer.holder == unit) return;
  buffer.holder = unit;
  runtime_.device.wait(Stream::communication, buffer.vacant);
  runtime_.device.wait(Stream::communication, at(updated_, unit));
  runtime_.ranks.all_gather(buffer.tensor.slice(0, sharding_.padded(at(units_, unit))),
                            at(owned_, unit));
  runtime_.device.record(buffer.filled, Stream::communication);
}

void Weights::updated(int unit) {
  if (sharding_.stage == 0) return;
  runtime_.device.record(at(updated_, unit), Stream::compute);
  if (sharding_.stage == 3) {
    if (buffer_of(unit).holder == unit) buffer_of(unit).holder = -1;
    return;
  }
  runtime_.device.wait(Stream::communication, at(updated_, unit));
  runtime_.ranks.all_gather(at(resident_, unit), at(owned_, unit));
  runtime_.device.record(at(gathered_, unit), Stream::communication);
}

}  // namespace shardplan::validator
