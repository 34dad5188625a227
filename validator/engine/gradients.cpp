#include "engine/gradients.h"

#include <utility>

namespace shardplan::validator {

Gradients::Gradients(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                     DType dtype, bool tied, GradientSink* sink)
    : runtime_(runtime),
      units_(units),
      sharding_(sharding),
      slots_(map_slots(units, sharding, tied, SlotsOf::gradients)),
      sink_(sink),
      written_(runtime.device.new_event()),
      reduced_(runtime.device.new_event()) {
  for (const Unit& unit : units_) {
    if (unit.frozen) {
      whole_.emplace_back();
      owned_.emplace_back();
      continue;
    }
    const bool whole = sharding_.stage < 2;
    if (!whole && sink_ != nullptr) continue;
    const std::int64_t numel = whole ? sharding_.padded(unit) : sharding_.shard(unit);
    const Tensor here =
        runtime_.arena.allocate(unit.name + ".gradients", Category::gradients, dtype, {numel});
    runtime_.device.zero(here);
    if (whole) whole_.push_back(here);
    owned_.push_back(whole ? here.slice(sharding_.first(unit), sharding_.shard(unit)) : here);
  }
  if (sharding_.stage < 2) return;
  for (const Slot& slot : slots_.slots) {
    const Tensor buffer = runtime_.arena.allocate(
        "reduction." + slot.name, Category::communication_buffers, dtype, {slot.numel});
    buffers_.push_back({.tensor = buffer, .reduced = runtime_.device.new_event()});
  }
}

void Gradients::begin_step() {
  if (sink_ != nullptr) sink_->begin_step();
}

void Gradients::begin_micro_batch(bool first, bool last) {
  first_ = first;
  last_ = last;
}

OpenGradient Gradients::open(int unit) {
  if (at(units_, unit).frozen) return {};
  if (sharding_.stage < 2) return {at(whole_, unit), !first_};
  ReduceBuffer& buffer = buffer_of(unit);
  drain(buffer);
  const Tensor flat = buffer.tensor.slice(0, sharding_.padded(at(units_, unit)));
  // What another layout left between the parameters would be reduced with them.
  const bool clean =
      buffer.last_unit >= 0 && same_layout(at(units_, buffer.last_unit), at(units_, unit));
  if (!clean) runtime_.device.zero(flat);
  buffer.last_unit = unit;
  return {flat, false};
}

void Gradients::close(int unit) {
  if (at(units_, unit).frozen) return;
  if (sharding_.stage < 2 && !last_) return;
  if (on_two_stages(at(units_, unit))) return;  // until both have made all of it
  reduce(unit);
}

void Gradients::reduce(int unit) {
  runtime_.device.record(written_, Stream::compute);
  runtime_.device.wait(Stream::communication, written_);
  const Unit& u = at(units_, unit);
  Communicator& ranks = runtime_.ranks_of(u);
  join(u, sharding_.stage < 2 ? at(whole_, unit) : buffer_of(unit).tensor);
  if (sharding_.stage == 0) {
    if (ranks.size() > 1) ranks.all_reduce(at(whole_, unit));
    return give(unit);
  }
  if (sharding_.stage == 1) {
    ranks.reduce_scatter(at(owned_, unit), at(whole_, unit));
    return give(unit);
  }
  ReduceBuffer& buffer = buffer_of(unit);
  const Tensor flat = buffer.tensor.slice(0, sharding_.padded(u));
  ranks.reduce_scatter(flat.slice(sharding_.first(u), sharding_.shard(u)), flat);
  runtime_.device.record(buffer.reduced, Stream::communication);
  buffer.pending = unit;
  buffer.accumulate = !first_;
  if (sink_ == nullptr) return;
  sink_->take(unit, flat.slice(sharding_.first(u), sharding_.shard(u)), buffer.reduced, !first_);
  runtime_.device.record(buffer.reduced, Stream::to_host);
}

/// What was reduced in place goes to the sink.
void Gradients::give(int unit) {
  if (sink_ == nullptr) return;
  runtime_.device.record(reduced_, Stream::communication);
  sink_->take(unit, at(owned_, unit), reduced_, false);
}

/// Sums what the ranks that share each layer have made of the same parameter's gradient.
void Gradients::join(const Unit& unit, const Tensor& flat) {
  if (runtime_.tensor.size() == 1) return;
  for (const ParameterSpec& p : unit.parameters)
    if (p.sharing == Sharing::summed)
      runtime_.tensor.all_reduce(flat.slice(p.offset, p.shape.numel()));
}

/// Sums what the first stage and the last have made of the gradient of a table that both have.
void Gradients::join_ends(int unit) {
  runtime_.device.record(written_, Stream::compute);
  runtime_.device.wait(Stream::communication, written_);
  for (const ParameterSpec& p : at(units_, unit).parameters)
    if (p.ends != Ends::one)
      runtime_.ends.all_reduce(at(whole_, unit).slice(p.offset, p.shape.numel()));
}

/// Brings the reduced shard from its slot to where it is kept, if that is here.
void Gradients::drain(ReduceBuffer& buffer) {
  if (buffer.pending < 0) return;
  runtime_.device.wait(Stream::compute, buffer.reduced);
  const int reduced = std::exchange(buffer.pending, -1);
  if (sink_ != nullptr) return;
  const Unit& unit = at(units_, reduced);
  const Tensor shard = buffer.tensor.slice(sharding_.first(unit), sharding_.shard(unit));
  const Tensor to = at(owned_, reduced);
  buffer.accumulate ? runtime_.device.add(to, shard) : runtime_.device.copy(to, shard);
}

void Gradients::finish() {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (!on_two_stages(units_[u])) continue;
    join_ends(static_cast<int>(u));
    reduce(static_cast<int>(u));
  }
  for (ReduceBuffer& buffer : buffers_) drain(buffer);
  runtime_.device.record(reduced_, Stream::communication);
  runtime_.device.wait(Stream::compute, reduced_);
}

}  // namespace shardplan::validator
