#include "lowering/library_workspaces.h"

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

}  // namespace shardplan
