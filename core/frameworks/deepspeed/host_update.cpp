// What DeepSpeed's step computes on the host where the optimizer is offloaded.
#include "frameworks/deepspeed/stages.h"

namespace shardplan {
namespace {

/// Whether updated weights are cast on the host: into the buffer that stages 1 and 2 have there
/// since 0.17.1, and at stage 3 by a blocking copy between two types, whose source is cast where it
/// lies (ATen/native/cuda/Copy.cu).
bool casts_on_host(const Plan& plan, const Engine& e) {
  const DeepSpeedOptions& options = plan.framework.deepspeed;
  return options.zero.stage == 3 ? e.b != e.m : options.version >= DeepSpeedVersion{0, 17, 1};
}

/// Launchers give each of a node's ranks one thread (OMP_NUM_THREADS=1, torchrun and accelerate),
/// with which PyTorch's passes take as long for a byte as CPUAdam. A rank alone has all cores.
bool has_one_thread(const Plan& plan) {
  return plan.cluster.gpus_per_node > 1;
}

}  // namespace

void update_on_host(ProgramBuilder& b, const Plan& plan, const Engine& e, std::int64_t elements) {
  const std::int64_t scaled = 2 * e.m;  // in place, whatever the norm (unscale_and_clip_grads)
  const std::int64_t cast = casts_on_host(plan, e) ? e.m + e.b : 0;
  if (!has_one_thread(plan))
    return b.host_optimizer(HostOptimizer::deepspeed_all_cores,
                            checked_mul(kCpuAdamBytes + scaled + cast, elements));
  b.host_optimizer(HostOptimizer::deepspeed_passes, checked_mul(scaled + cast, elements));
  b.host_optimizer(HostOptimizer::deepspeed, elements);
}

}  // namespace shardplan
