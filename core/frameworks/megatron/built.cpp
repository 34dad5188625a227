#include "frameworks/megatron/built.h"

#include <algorithm>

#include "base/checked.h"
#include "lowering/tensors.h"
#include "optimizers/states.h"
#include "program/tape.h"

namespace shardplan {
namespace {

template <typename Visit>
void for_each_shard(const std::vector<GradientBuffers>& chunks, Visit&& visit) {
  for (const bool experts : {false, true})
    for (const GradientBuffers& chunk : chunks)
      for (const std::int64_t elements : (experts ? chunk.experts : chunk.dense).shards)
        visit(elements);
}

std::int64_t bytes_of(std::int64_t elements, std::int64_t each) {
  return round_up(checked_mul(elements, each), kAllocationUnit);
}

std::vector<Event> before_first_step(std::vector<Event> residents) {
  std::erase_if(residents, [](const Event& e) {
    return e.category == Category::workspace || e.category == Category::optimizer_states;
  });
  return residents;
}

class Builder {
 public:
  Builder(const Model& own, const Plan& plan) : own_(own), plan_(plan) {}

  std::vector<Event> run(const std::vector<GradientBuffers>& chunks,
                         const std::vector<Event>& residents) {
    append_frozen_parameters(list_, own_, plan_);
    move_parameters(Event::Kind::alloc);
    for (const Event& e : residents)
      if (e.category != Category::parameters && e.category != Category::master_parameters)
        list_.push_back(e);
    const std::int64_t each = size_of(plan_.precision.params);
    for (const GradientBuffers& chunk : chunks)
      for (const GradientBuffer& buffer : {chunk.dense, chunk.experts})
        add(Event::Kind::alloc, bytes_of(buffer.elements, each));
    move_parameters(Event::Kind::free);
    add_masters(chunks, each);
    return std::move(list_);
  }

 private:
  void add(Event::Kind kind, std::int64_t bytes, Category category = Category::parameters,
           std::int64_t count = 1) {
    if (bytes == 0) return;
    append_tensors(list_, category, bytes, count);
    list_.back().kind = kind;
  }

  void move_parameters(Event::Kind kind) {
    for (const Event& e :
         trainable_tensors(own_, Category::parameters, size_of(plan_.precision.params)))
      add(kind, e.bytes, e.category, e.count);
  }

  void add_masters(const std::vector<GradientBuffers>& chunks, std::int64_t each) {
    const Precision& p = plan_.precision;
    if (p.params == DType::f32 || !p.master) return;
    for_each_shard(chunks, [&](std::int64_t elements) {
      add(Event::Kind::alloc, bytes_of(elements, each));
      add(Event::Kind::alloc, bytes_of(elements, size_of(*p.master)), Category::master_parameters);
      add(Event::Kind::free, bytes_of(elements, each));
    });
  }

  const Model& own_;
  const Plan& plan_;
  std::vector<Event> list_;
};

}  // namespace

std::vector<Event> shard_tensors(const std::vector<GradientBuffers>& chunks, Category category,
                                 std::int64_t bytes_each) {
  std::vector<Event> list;
  for_each_shard(chunks, [&](std::int64_t elements) {
    append_tensors(list, category, bytes_of(elements, bytes_each), 1);
  });
  return list;
}

std::vector<Event> shard_states(const std::vector<GradientBuffers>& chunks, const Plan& plan) {
  std::vector<Event> list;
  const DType type = plan.precision.optimizer_states;
  for_each_shard(chunks, [&](std::int64_t elements) {
    const Updated part{.given = Given::flat, .numel = elements, .whole = elements};
    for_each_state(part, plan.optimizer, {type, type}, [&](std::int64_t bytes, bool) {
      append_tensors(list, Category::optimizer_states, round_up(bytes, kAllocationUnit), 1);
    });
  });
  return list;
}

std::vector<Event> build_of(const Model& own, const Plan& plan,
                            const std::vector<GradientBuffers>* moved,
                            const std::vector<Event>& residents) {
  const std::vector<Event> built = before_first_step(residents);
  return moved == nullptr ? built : Builder(own, plan).run(*moved, built);
}

std::int64_t built_bytes(const std::vector<Event>& residents) {
  return total_bytes(before_first_step(residents));
}

std::vector<Event> workspaces_but(const std::vector<Event>& residents,
                                  const std::vector<Event>& late) {
  std::vector<Event> made = residents;
  std::erase_if(made, [](const Event& e) { return e.category != Category::workspace; });
  for (const Event& other : late) {
    const auto same = std::find_if(made.begin(), made.end(),
                                   [&](const Event& e) { return e.bytes == other.bytes; });
    if (same != made.end() && --same->count == 0) made.erase(same);
  }
  return made;
}

std::vector<SegmentRepeat> with_layers_apart(const std::vector<SegmentRepeat>& repeats) {
  std::vector<SegmentRepeat> apart;
  for (const SegmentRepeat& repeat : repeats) {
    apart.push_back(repeat);
    if (repeat.count <= 1) continue;
    apart.back().count = 1;
    apart.push_back(repeat);
    --apart.back().count;
  }
  return apart;
}

}  // namespace shardplan
