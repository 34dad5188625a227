#include "engine/weights.h"

namespace shardplan::validator {

Weights::Weights(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                 DType dtype, bool tied, const Offload& offload)
    : runtime_(runtime),
      units_(units),
      sharding_(sharding),
      dtype_(dtype),
      slots_(map_slots(units, sharding, tied, SlotsOf::parameters)) {
  if (offload.parameters_on_nvme) {
    shards_ = make_swapped_shards(runtime, units, sharding, dtype, tied, offload.direct);
  } else if (offload.parameters) {
    shards_ = make_resident_shards(runtime, units, sharding, dtype);
  }
  for (const Unit& unit : units_) {
    updated_.push_back(runtime_.device.new_event());
    whole_.push_back(runtime_.device.new_event());
    released_.push_back(runtime_.device.new_event());
    if (shards_) continue;
    const bool whole = sharding_.stage < 3;
    const std::int64_t numel = whole ? sharding_.padded(unit) : sharding_.shard(unit);
    const Tensor here = runtime_.arena.allocate(unit.name + ".parameters", Category::parameters,
                                                unit.stored_as(dtype), {numel});
    resident_.push_back(here);
    owned_.push_back(whole ? here.slice(sharding_.first(unit), sharding_.shard(unit)) : here);
  }
  if (sharding_.stage < 3) return;
  for (const Slot& slot : slots_.slots)
    buffers_.push_back(
        {runtime_.arena.allocate("gathered." + slot.name, Category::gathered_parameters,
                                 slot.bytes ? DType::i8 : dtype, {slot.numel}),
         -1, runtime_.device.new_event(), runtime_.device.new_event()});
  if (!shards_) return;
  for (const GatherBuffer& buffer : buffers_) shards_->use(buffer.tensor);
  for (std::size_t u = 0; u < units_.size(); ++u)
    resident_.push_back(place_of(static_cast<int>(u)));
}

Tensor Weights::place_of(int unit) const {
  const Unit& u = at(units_, unit);
  return at(buffers_, at(slots_.of_unit, unit))
      .tensor.slice(sharding_.first(u), sharding_.shard(u));
}

Tensor Weights::room_for_all(int unit) const {
  if (sharding_.stage < 3) return at(resident_, unit);
  return at(buffers_, at(slots_.of_unit, unit)).tensor.slice(0, sharding_.padded(at(units_, unit)));
}

Tensor Weights::acquire(int unit) {
  if (sharding_.stage < 3) {
    before_use_(unit);
    runtime_.device.wait(Stream::compute, at(whole_, unit));
    return at(resident_, unit);
  }
  prefetch(unit);
  GatherBuffer& buffer = buffer_of(unit);
  if (buffer.landing) {
    shards_->land(unit);
    gather(unit);
  }
  runtime_.device.wait(Stream::compute, buffer.filled);
  return buffer.tensor.slice(0, sharding_.padded(at(units_, unit)));
}

void Weights::release(int unit) {
  runtime_.device.record(at(released_, unit), Stream::compute);
  if (sharding_.stage == 3) runtime_.device.record(buffer_of(unit).vacant, Stream::compute);
}

void Weights::prefetch(int unit) {
  if (sharding_.stage < 3) return;
  before_use_(unit);
  GatherBuffer& buffer = buffer_of(unit);
  if (buffer.holder == unit) return;
  buffer.holder = unit;
  if (shards_) {
    buffer.landing = shards_->bring(unit, place_of(unit), buffer.vacant) == Arrival::landing;
    runtime_.device.record(at(updated_, unit), Stream::to_device);
  } else {
    runtime_.device.wait(Stream::communication, buffer.vacant);
  }
  if (!buffer.landing) gather(unit);
}

/// This rank's shard is there, or will be with what is enqueued.
void Weights::gather(int unit) {
  GatherBuffer& buffer = buffer_of(unit);
  buffer.landing = false;
  const Tensor full = buffer.tensor.slice(0, sharding_.padded(at(units_, unit)));
  runtime_.device.wait(Stream::communication, at(updated_, unit));
  runtime_.ranks_of(at(units_, unit)).all_gather(full, shards_ ? place_of(unit) : at(owned_, unit));
  runtime_.device.record(buffer.filled, Stream::communication);
}

void Weights::expect(int unit) {
  if (!shards_ || buffer_of(unit).holder == unit) return;
  const Awaited awaited = awaited_(unit);
  if (awaited != Awaited::overwrite) shards_->expect(unit, awaited == Awaited::change);
}

void Weights::keep(int unit) {
  if (!shards_) return;
  const Event written = at(updated_, unit);
  runtime_.device.record(written, Stream::compute);
  shards_->store(unit, at(resident_, unit), written);  // the next unit may have the same place
}

void Weights::updated(int unit, Stream by) {
  if (!shards_) runtime_.device.record(at(updated_, unit), by);
  if (sharding_.stage == 3) {
    if (buffer_of(unit).holder == unit) buffer_of(unit).holder = -1;
    return;
  }
  if (sharding_.stage == 0) {
    runtime_.device.record(at(whole_, unit), by);
    return;
  }
  runtime_.device.wait(Stream::communication, at(updated_, unit));
  runtime_.ranks_of(at(units_, unit)).all_gather(at(resident_, unit), at(owned_, unit));
  runtime_.device.record(at(whole_, unit), Stream::communication);
}

}  // namespace shardplan::validator
