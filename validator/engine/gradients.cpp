#include "engine/gradients.h"

namespace shardplan::validator {

Gradients::Gradients(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                     DType dtype, bool tied)
    : runtime_(runtime),
      units_(units),
      sharding_(sharding),
      slots_(map_slots(units, sharding, tied)),
      written_(runtime.device.new_event()),
      reduced_(runtime.device.new_event()) {
  for (const Unit& unit : units_) {
    const bool whole = sharding_.stage < 2;
    const std::int64_t numel = whole ? sharding_.padded(unit) : sharding_.shard(unit);
    const Tensor here =
        runtime_.arena.allocate(unit.name + ".gradients", Category::gradients, dtype, {numel});
    runtime_.device.zero(here);
    if (whole) whole_.push_back(here);
    owned_.push_back(whole ? here.slice(sharding_.first(unit), sharding_.shard(unit)) : here);
  }
  if (sharding_.stage < 2) return;
  for (const Slot& slot : slots_.slots) {
    const Tensor room = runtime_.arena.allocate(
        "reduction." + slot.name, Category::communication_buffers, dtype, {slot.numel});
    rooms_.push_back({.tensor = room, .reduced = runtime_.device.new_event()});
  }
}

void Gradients::begin_micro_batch(bool first, bool last) {
  first_ = first;
  last_ = last;
}

OpenGradient Gradients::open(int unit) {
  if (sharding_.stage < 2) return {at(whole_, unit), !first_};
  Room& room = room_of(unit);
  drain(room);
  const Tensor flat = room.tensor.slice(0, sharding_.padded(at(units_, unit)));
  // What another layout left between the parameters would be reduced with them.
  const bool clean =
      room.last_unit >= 0 && same_layout(at(units_, room.last_unit), at(units_, unit));
  if (!clean) runtime_.device.zero(flat);
  room.last_unit = unit;
  return {flat, false};
}

void Gradients::close(int unit) {
  if (sharding_.stage < 2 && !last_) return;
  runtime_.device.record(written_, Stream::compute);
  runtime_.device.wait(Stream::communication, written_);
  const Unit& u = at(units_, unit);
  if (sharding_.stage == 0) {
    if (sharding_.world > 1) runtime_.ranks.all_reduce(at(whole_, unit));
    return;
  }
  if (sharding_.stage == 1) {
    runtime_.ranks.reduce_scatter(at(owned_, unit), at(whole_, unit));
    return;
  }
  Room& room = room_of(unit);
  const Tensor flat = room.tensor.slice(0, sharding_.padded(u));
  runtime_.ranks.reduce_scatter(flat.slice(sharding_.first(u), sharding_.shard(u)), flat);
  runtime_.device.record(room.reduced, Stream::communication);
  room.pending = unit;
  room.accumulate = !first_;
}

/// Brings the reduced shard from its slot to where it is kept.
void Gradients::drain(Room& room) {
  if (room.pending < 0) return;
  const Unit& unit = at(units_, room.pending);
  runtime_.device.wait(Stream::compute, room.reduced);
  const Tensor shard = room.tensor.slice(sharding_.first(unit), sharding_.shard(unit));
  const Tensor to = at(owned_, room.pending);
  room.accumulate ? runtime_.device.add(to, shard) : runtime_.device.copy(to, shard);
  room.pending = -1;
}

void Gradients::finish() {
  for (Room& room : rooms_) drain(room);
  runtime_.device.record(reduced_, Stream::communication);
  runtime_.device.wait(Stream::compute, reduced_);
}

}  // namespace shardplan::validator
