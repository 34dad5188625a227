#include "lowering/library_workspaces.h"

#include <string>

namespace shardplan {

std::int64_t cublas_workspace(const Gpu& gpu) {
  const std::int64_t hopper_and_later = 32 * 1024 * 1024;
  const std::int64_t before = 8 * 1024 * 1024 + 128 * 1024;
  const int major = gpu.compute_capability.empty() ? 0 : std::stoi(gpu.compute_capability);
  return major >= 9 ? hopper_and_later : before;
}

std::int64_t cublas_workspaces(const Gpu& gpu) {
  return 2 * cublas_workspace(gpu);
}

void add_cublas_workspaces(ProgramBuilder& b, const Gpu& gpu) {
  b.resident(Category::workspace, cublas_workspace(gpu), 2);
}

}  // namespace shardplan
