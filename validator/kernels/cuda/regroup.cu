// Parts of groups become groups of parts: rows that came rank by rank stand expert by expert.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/vector.cuh"

namespace shardplan::validator::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kEach = 4;  // accesses of a thread at the least, where there are as many

struct Layout {
  std::int64_t groups, parts;
  std::int64_t count;  // of each part
};

/// Block (x, y) has a stretch of part y of `from`.
template <class T>
__global__ void __launch_bounds__(kThreads) regroup_kernel(T* to, const T* from, Layout of) {
  const std::int64_t group = blockIdx.y / of.parts, part = blockIdx.y % of.parts;
  const T* source = from + blockIdx.y * of.count;
  T* target = to + (part * of.groups + group) * of.count;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
#pragma unroll kEach
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < of.count; i += step)
    target[i] = source[i];
}

template <class T>
void run(const Launch& launch, const Tensor& to, const Tensor& from, Layout of) {
  const std::int64_t pieces = of.groups * of.parts;
  of.count = from.bytes() / pieces / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t blocks = std::clamp<std::int64_t>(ceil_div(of.count, kThreads * kEach), 1,
                                                       ceil_div(kManyBlocks * 2, pieces));
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(pieces));
  regroup_kernel<<<grid, kThreads, 0, launch.stream>>>(data<T>(to), data<T>(from), of);
}

}  // namespace

void regroup(const Launch& launch, const Tensor& to, const Tensor& from, std::int64_t groups,
             std::int64_t parts) {
  const Layout of{.groups = groups, .parts = parts, .count = 0};
  const auto fits = [&](std::int64_t bytes) { return from.bytes() / groups / parts % bytes == 0; };
  if (fits(16) && to.address % 16 == 0 && from.address % 16 == 0) {
    run<uint4>(launch, to, from, of);
  } else if (fits(4)) {
    run<std::uint32_t>(launch, to, from, of);
  } else {
    run<std::uint16_t>(launch, to, from, of);
  }
  check_launch();
}

}  // namespace shardplan::validator::cuda
