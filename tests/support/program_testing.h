// A step program played event by event, repetitions unrolled: slow, and obviously right.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "program/program.h"
#include "simulator/memory.h"

namespace shardplan {

inline void unroll(const Program& program, std::size_t begin, std::size_t end,
                   std::vector<Event>& out) {
  const std::vector<Event>& events = program.events;
  for (std::size_t i = begin; i < end; ++i) {
    if (events[i].kind == Event::Kind::blocks) {
      for_each_block(program, events[i], [&](const Event& block) { out.push_back(block); });
      continue;
    }
    if (events[i].kind != Event::Kind::begin_repeat) {
      out.push_back(events[i]);
      continue;
    }
    int depth = 0;
    std::size_t close = i;
    for (;; ++close) {
      if (events[close].kind == Event::Kind::begin_repeat) ++depth;
      if (events[close].kind == Event::Kind::end_repeat && --depth == 0) break;
    }
    for (std::int64_t n = 0; n < events[i].count; ++n) unroll(program, i + 1, close, out);
    i = close;
  }
}

struct Played {
  MemoryProfile profile;
  CategoryBytes at_end{};
  CategoryBytes least{};  ///< the lowest that each category ever was
};

inline Played play(const Program& program) {
  std::vector<Event> events;
  unroll(program, 0, program.events.size(), events);
  Played p;
  CategoryBytes live{};
  std::int64_t total = 0;
  const auto add = [&](Category c, std::int64_t bytes) {
    live[index_of(c)] += bytes;
    total += bytes;
    p.least[index_of(c)] = std::min(p.least[index_of(c)], live[index_of(c)]);
  };
  for (const Event& e : program.resident) add(e.category, e.bytes * e.count);
  p.profile.at_start = live;
  std::size_t phase = 0;
  std::array<CategoryBytes, kPhaseCount> at_peak{};
  const auto note = [&] {
    if (total <= p.profile.phases[phase].peak) return;
    p.profile.phases[phase].peak = total;
    at_peak[phase] = live;
  };
  const auto note_gradients = [&] {
    p.profile.gradients_whole =
        std::max(p.profile.gradients_whole, live[index_of(Category::gradients)]);
  };
  for (const Event& e : events) {
    if (e.kind == Event::Kind::alloc) add(e.category, e.bytes);
    if (e.kind == Event::Kind::free) add(e.category, -e.bytes);
    if (e.kind == Event::Kind::begin_phase) phase = static_cast<std::size_t>(e.phase);
    if (e.kind == Event::Kind::alloc || e.kind == Event::Kind::begin_phase) note();
    if (e.kind == Event::Kind::gradients_whole) note_gradients();
    if (e.kind == Event::Kind::end_phase) {
      p.profile.phases[phase].end = total;
      if (e.phase == Phase::backward) note_gradients();
    }
  }
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    if (p.profile.phases[i].peak <= p.profile.peak) continue;
    p.profile.peak = p.profile.phases[i].peak;
    p.profile.peak_phase = static_cast<Phase>(i);
    p.profile.at_peak = at_peak[i];
  }
  p.at_end = live;
  return p;
}

}  // namespace shardplan
