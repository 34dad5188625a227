#include "lowering/rlhf/sleeping.h"

#include <utility>

namespace shardplan {
namespace {

bool is_engines(const Event& e) {
  const bool block = e.kind == Event::Kind::alloc || e.kind == Event::Kind::free;
  return block && (e.category == Category::parameters || e.category == Category::kv_cache);
}

}  // namespace

std::vector<Program> turns_apart(const Program& iteration) {
  Program without = iteration, turn = iteration;
  without.events.clear();
  turn.events.clear();
  bool generating = false;
  for (const Event& e : iteration.events) {
    if (e.kind == Event::Kind::begin_phase) generating = e.phase == Phase::generation;
    if (!generating || !is_engines(e)) without.events.push_back(e);
    // The scores' tensors outlive the turn: they are the other program's.
    if (generating && e.category != Category::other) turn.events.push_back(e);
    if (e.kind == Event::Kind::end_phase && e.phase == Phase::generation) generating = false;
  }
  // All states are there when the engine wakes: no step of this one makes them.
  turn.once.clear();
  turn.build.clear();
  std::vector<Program> both;
  both.push_back(std::move(without));
  both.push_back(std::move(turn));
  return both;
}

}  // namespace shardplan
