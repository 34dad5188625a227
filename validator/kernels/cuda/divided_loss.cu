// The loss over a vocabulary that ranks divide: each says of its columns what the others need, and
// puts together what all have said.
#include "kernels/cuda/launchers.h"
#include "kernels/cuda/softmax.cuh"

namespace shardplan::validator::cuda {
namespace {

using namespace softmax;

constexpr int kNumbers = static_cast<int>(LossParts::kNumbers);

template <class T, int W>
__global__ void __launch_bounds__(kThreads)
    loss_parts_kernel(float* parts, const T* logits, const std::int32_t* targets,
                      std::int64_t first, int columns, int width) {
  __shared__ Softmax scratch[kThreads / kWarp];
  const T* row = logits + std::int64_t{blockIdx.x} * width;
  const Softmax mine = of_row<W>(row, columns, scratch);
  if (threadIdx.x != 0) return;
  float* part = parts + std::int64_t{blockIdx.x} * kNumbers;
  const std::int64_t target = targets[blockIdx.x] - first;
  part[0] = mine.largest;
  part[1] = mine.sum;
  part[2] = target >= 0 && target < columns ? to_float(row[target]) : 0.0F;
}

template <class T>
struct JoinArgs {
  T* logits;
  float* losses;
  const std::int32_t* targets;
  const float* all;
  std::int64_t first;
  int ranks, rows, columns, width;
  float gradient_scale;
};

template <class T, int W>
__global__ void __launch_bounds__(kThreads) joined_cross_entropy_kernel(JoinArgs<T> a) {
  const std::int64_t at = blockIdx.x;
  T* row = a.logits + at * a.width;
  const int token = a.targets[at];
  const int thread = static_cast<int>(threadIdx.x);
  if (token < 0) {  // not counted
    for (int col = thread; col < a.width; col += kThreads) row[col] = from_float<T>(0.0F);
    if (thread == 0) a.losses[at] = 0.0F;
    return;
  }
  Softmax all = {-INFINITY, 0.0F};
  float target_logit = 0.0F;
  for (int rank = 0; rank < a.ranks; ++rank) {
    const float* part = a.all + (std::int64_t{rank} * a.rows + at) * kNumbers;
    all = merge(all, {part[0], part[1]});
    target_logit += part[2];
  }
  if (thread == 0) a.losses[at] = logf(all.sum) + all.largest - target_logit;
  const std::int64_t here = token - a.first;
  const int target = here >= 0 && here < a.columns ? static_cast<int>(here) : -1;
  write_gradient<W>(row, a.columns, a.width, all, target, a.gradient_scale);
}

}  // namespace

void loss_parts(const Launch& launch, const LossParts& o) {
  for_dtype(o.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        o.logits.width(),
        [&](auto width) {
          loss_parts_kernel<T, decltype(width)::value>
              <<<static_cast<unsigned>(o.logits.rows()), kThreads, 0, launch.stream>>>(
                  data<float>(o.parts), data<T>(o.logits), data<std::int32_t>(o.targets), o.first,
                  static_cast<int>(o.vocabulary), static_cast<int>(o.logits.width()));
        },
        o.logits);
  });
  check_launch();
}

void joined_cross_entropy(const Launch& launch, const JoinedCrossEntropy& o) {
  const CrossEntropy& c = o.loss;
  const auto rows = static_cast<int>(c.logits.rows());
  for_dtype(c.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_width<T>(
        c.logits.width(),
        [&](auto width) {
          const JoinArgs<T> args{.logits = data<T>(c.logits),
                                 .losses = data<float>(c.losses),
                                 .targets = data<std::int32_t>(c.targets),
                                 .all = data<float>(o.all),
                                 .first = o.first,
                                 .ranks = static_cast<int>(o.all.rows()) / rows,
                                 .rows = rows,
                                 .columns = static_cast<int>(c.vocabulary),
                                 .width = static_cast<int>(c.logits.width()),
                                 .gradient_scale = c.gradient_scale};
          joined_cross_entropy_kernel<T, decltype(width)::value>
              <<<static_cast<unsigned>(rows), kThreads, 0, launch.stream>>>(args);
        },
        c.logits);
  });
  check_launch();
}

}  // namespace shardplan::validator::cuda
