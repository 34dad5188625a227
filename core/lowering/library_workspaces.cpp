#include "lowering/library_workspaces.h"

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

void make_workspaces_in_first_step(ProgramBuilder& b, std::vector<Event>& build,
                                   const ModelRun& run) {
  const std::int64_t own = makes_workspace_late(run) ? 1 : 0;
  std::vector<Event> later;
  std::erase_if(build, [&](const Event& e) {
    if (e.category != Category::workspace) return false;
    later.push_back(e);
    later.back().count -= own;
    return true;
  });
  b.in_first_step(std::move(later));
}

}  // namespace shardplan
