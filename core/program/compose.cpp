#include "program/compose.h"

namespace shardplan {
void append_residents(Program& whole, const Program& part) {
  for (const Event& e : part.resident)
    if (e.category != Category::workspace) whole.resident.push_back(e);
  whole.host.pageable += part.host.pageable;
  whole.host.pinned += part.host.pinned;
  whole.host.nvme += part.host.nvme;
  whole.held_at_most = checked_add(whole.held_at_most, part.held_at_most);
  whole.most_over = std::max(whole.most_over, part.most_over);
  whole.most_workspaces_over = std::max(whole.most_workspaces_over, part.most_workspaces_over);
}

void append_events(Program& whole, const Program& part, std::optional<Phase> as,
                   const std::function<void()>& after_forward) {
  const auto kernels = static_cast<std::int32_t>(whole.kernels.size());
  const auto once = static_cast<std::int64_t>(whole.once.size());
  const auto blocks = static_cast<std::int32_t>(whole.blocks.size());
  whole.blocks.insert(whole.blocks.end(), part.blocks.begin(), part.blocks.end());
  whole.kernels.insert(whole.kernels.end(), part.kernels.begin(), part.kernels.end());
  whole.once.insert(whole.once.end(), part.once.begin(), part.once.end());
  for (Event e : part.events) {
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
