#include "frameworks/native/turns.h"

#include "frameworks/native/kernels.h"
#include "lowering/pipeline/schedule.h"

namespace shardplan {
namespace {

double flops_of_work(const NativeWork& work) {
  double sum = 0;
  for (const NativeStretch& stretch : work)
    for (const Kernel& kernel : stretch.kernels) sum += flops_of(kernel);
  return sum;
}

}  // namespace

double native_bubble_share(const Native& n) {
  const NativeStage& stage = n.pipeline;
  if (stage.stages == 1) return 0;
  if (!n.layout.decoder) return bubble_share(n.plan);
  const double blocks =
      static_cast<double>(n.blocks_of_chunk() * stage.chunks) *
      (flops_of_work(native_block_forward(n)) + flops_of_work(native_block_backward(n, {})));
  const double head = flops_of_work(native_head(n));
  const auto others = static_cast<double>(stage.stages - 1);
  const double mine = blocks + (stage.last() ? head : 0);
  const double theirs = others * blocks + (stage.last() ? 0 : head);
  return mine > 0 ? bubble_share(n.plan) * theirs / (others * mine) : 0;
}

}  // namespace shardplan
