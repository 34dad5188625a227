#include "program/compose.h"

#include <algorithm>

namespace shardplan {
namespace {

/// Whether every step but the first begins by letting the resident go: a tensor that an optimizer
/// has left, and no library's workspace.
bool lets_go(const Program& part, const Event& resident) {
  if (resident.category != Category::workspace) return false;
  return std::ranges::any_of(part.events, [&](const Event& e) {
    return e.kind == Event::Kind::free && e.category == resident.category &&
           e.bytes == resident.bytes && e.first_step > 1;
  });
}

Event renamed(Event e, std::int32_t first_name) {
  if (e.name != kUnnamed) e.name += first_name;
  return e;
}

}  // namespace

void append_left_tensors(Program& whole, const Program& part) {
  for (const Event& e : part.resident)
    if (lets_go(part, e)) whole.resident.push_back(e);
}

void append_residents(Program& whole, const Program& part) {
  for (const Event& e : part.resident)
    if (e.category != Category::workspace || lets_go(part, e)) whole.resident.push_back(e);
  whole.host.pageable += part.host.pageable;
  whole.host.pinned += part.host.pinned;
  whole.host.nvme += part.host.nvme;
  whole.held_at_most = checked_add(whole.held_at_most, part.held_at_most);
  whole.most_over = std::max(whole.most_over, part.most_over);
  whole.most_workspaces_over = std::max(whole.most_workspaces_over, part.most_workspaces_over);
}

std::int32_t names_of(const Program& part) {
  std::int32_t most = kUnnamed;
  for (const std::vector<Event>* list : {&part.events, &part.blocks})
    for (const Event& e : *list) most = std::max(most, e.name);
  return most == kUnnamed ? 0 : most + 1;
}

void append_events(Program& whole, const Program& part, std::optional<Phase> as,
                   const std::function<void()>& after_forward, std::int32_t first_name) {
  const auto kernels = static_cast<std::int32_t>(whole.kernels.size());
  const auto once = static_cast<std::int64_t>(whole.once.size());
  const auto blocks = static_cast<std::int32_t>(whole.blocks.size());
  for (const Event& e : part.blocks) whole.blocks.push_back(renamed(e, first_name));
  whole.kernels.insert(whole.kernels.end(), part.kernels.begin(), part.kernels.end());
  whole.once.insert(whole.once.end(), part.once.begin(), part.once.end());
  for (Event e : part.events) {
    e = renamed(e, first_name);
    const bool phase = e.kind == Event::Kind::begin_phase || e.kind == Event::Kind::end_phase;
    const bool forward_ends = e.kind == Event::Kind::end_phase && e.phase == Phase::forward;
    if (e.kind == Event::Kind::compute) e.first += kernels;
    if (e.kind == Event::Kind::blocks) e.first += blocks;
    if (e.kind == Event::Kind::once) e.count += once;
    if (phase && as) e.phase = *as;
    whole.events.push_back(e);
    if (forward_ends && after_forward) after_forward();
  }
}

}  // namespace shardplan
