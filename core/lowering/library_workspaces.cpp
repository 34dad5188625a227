#include "lowering/library_workspaces.h"

#include <algorithm>
#include <utility>

namespace shardplan {

std::int64_t cublas_workspace(const Gpu& gpu) {
  return gpu.abilities.blas_workspace_bytes;
}

std::int64_t cublas_workspaces(const Gpu& gpu) {
  return 2 * cublas_workspace(gpu);
}

void add_cublas_workspaces(ProgramBuilder& b, const Gpu& gpu) {
  b.resident(Category::workspace, cublas_workspace(gpu), 2);
}

std::int64_t late_workspaces(const ModelRun& run) {
  const auto makes = [&](auto&& events_of) {
    return std::any_of(run.segments.begin(), run.segments.end(), [&](const SegmentRun& s) {
      return std::ranges::any_of(
          events_of(s), [](const TapeEvent& e) { return e.kind == TapeEvent::Kind::workspace; });
    });
  };
  const bool caller = makes([](const SegmentRun& s) -> auto& { return s.forward.forward; });
  const bool autograd = makes([](const SegmentRun& s) -> auto& { return s.backward.backward; });
  return (caller ? 1 : 0) + (autograd ? 1 : 0);
}

void make_workspaces_in_first_step(ProgramBuilder& b, std::vector<Event>& build,
                                   const ModelRun& run) {
  const std::int64_t own = late_workspaces(run);
  std::vector<Event> later;
  std::erase_if(build, [&](const Event& e) {
    if (e.category != Category::workspace) return false;
    later.push_back(e);
    later.back().count -= own;
    return true;
  });
  std::erase_if(later, [](const Event& e) { return e.count <= 0; });
  b.in_first_step(std::move(later));
}

}  // namespace shardplan
