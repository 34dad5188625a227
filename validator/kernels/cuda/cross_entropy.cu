// One block a row. The row is read twice, the second time mostly from the L2 cache, and overwritten
// by its gradient; the logits are the only large tensor of the loss.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/softmax.cuh"

namespace shardplan::validator::cuda {
namespace {

using namespace softmax;

template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_kernel(T* logits, float* losses, const std::int32_t* targets, int vocabulary,
                         int width, float gradient_scale) {
  __shared__ Softmax scratch[kThreads / kWarp];
  T* row = logits + std::int64_t{blockIdx.x} * width;
  const int target = targets[blockIdx.x];
  const int thread = static_cast<int>(threadIdx.x);

  if (target < 0) {  // not counted
    for (int col = thread; col < width; col += kThreads) row[col] = from_float<T>(0.0F);
    if (thread == 0) losses[blockIdx.x] = 0.0F;
    return;
  }
  const Softmax all = of_row<W>(row, vocabulary, scratch);
  if (thread == 0) losses[blockIdx.x] = logf(all.sum) + all.largest - to_float(row[target]);
  __syncthreads();  // the target's logit has been read
  write_gradient<W>(row, vocabulary, width, all, target, gradient_scale);
}

}  // namespace

void cross_entropy(const Launch& launch, const CrossEntropy& o) {
  for_dtype(o.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        o.logits.width(),
        [&](auto width) {
          cross_entropy_kernel<T, decltype(width)::value>
              <<<static_cast<unsigned>(o.logits.rows()), kThreads, 0, launch.stream>>>(
                  data<T>(o.logits), data<float>(o.losses), data<std::int32_t>(o.targets),
                  static_cast<int>(o.vocabulary), static_cast<int>(o.logits.width()),
                  o.gradient_scale);
        },
        o.logits);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
