#include "lowering/rlhf/workspaces.h"

#include <algorithm>

namespace shardplan {
namespace {

/// Not one that a trial of a kernel makes and frees.
bool keeps_workspaces(const EventsOfOneStep& once) {
  return !once.makes_residents && std::none_of(once.events.begin(), once.events.end(),
                                               [](auto& e) { return e.kind == Event::Kind::free; });
}

/// Leaves to `once` what is among `left`, and takes it from there.
void take(EventsOfOneStep& once, std::vector<Event>& left) {
  for (Event& e : once.events) {
    if (e.category != Category::workspace) continue;
    const auto same =
        std::ranges::find_if(left, [&](const Event& other) { return other.bytes == e.bytes; });
    if (same == left.end()) continue;
    e.count = std::min(e.count, same->count);
    same->count -= e.count;
  }
  std::erase_if(once.events, [](const Event& e) { return e.count == 0; });
  if (once.events.empty()) once.workspace = 0;
}

}  // namespace

void make_workspaces_once(Program& whole, std::vector<Event> libraries) {
  if (whole.build.empty()) return;
  for (const Event& e : whole.events) {
    if (e.kind != Event::Kind::once) continue;
    EventsOfOneStep& once = whole.once[static_cast<std::size_t>(e.count)];
    if (keeps_workspaces(once)) take(once, libraries);
  }
  std::erase_if(libraries, [](const Event& e) { return e.count == 0; });
  whole.build.insert(whole.build.begin(), libraries.begin(), libraries.end());
}

}  // namespace shardplan
