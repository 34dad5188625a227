#include "questions/peer_rules.h"

#include <algorithm>

#include "base/checked.h"

namespace shardplan {
namespace {

bool runs_deepspeed(const Plan& plan) {
  return plan.framework.kind == FrameworkKind::deepspeed;
}

int stage_of(const Plan& plan) {
  return plan.framework.deepspeed.zero.stage;
}

/// model.modules() with parameters(recurse=False): the largest module of its own.
std::int64_t largest_module(const Model& model) {
  std::int64_t largest = 0;
  for (const Module& module : model.modules) {
    std::int64_t sum = 0;
    for (const ParameterId id : module.parameters)
      sum = checked_add(sum, model.parameters[static_cast<std::size_t>(id)].numel);
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace

std::optional<std::int64_t> flat_sixteen_bytes(const Model& model, const Plan& plan) {
  const bool sharded =
      (runs_deepspeed(plan) && stage_of(plan) == 3) || plan.framework.kind == FrameworkKind::fsdp2;
  return checked_mul(16, model.parameter_count()) / (sharded ? plan.cluster.world() : 1);
}

std::optional<std::int64_t> deepspeed_zero2_estimate(const Model& model, const Plan& plan) {
  const bool single = plan.framework.kind == FrameworkKind::single;
  if (!single && !(runs_deepspeed(plan) && (stage_of(plan) == 1 || stage_of(plan) == 2))) return {};
  const std::int64_t parameters = model.parameter_count();
  const bool offload =
      !single && plan.framework.deepspeed.zero.offload_optimizer.device != OffloadDevice::none;
  if (offload) return checked_mul(2, parameters);
  return checked_add(checked_mul(2, parameters),
                     checked_mul(18, parameters) / plan.cluster.world());
}

std::optional<std::int64_t> deepspeed_zero3_estimate(const Model& model, const Plan& plan) {
  const bool fsdp2 = plan.framework.kind == FrameworkKind::fsdp2;
  if (!fsdp2 && !(runs_deepspeed(plan) && stage_of(plan) == 3)) return {};
  const ZeroOptions& zero = plan.framework.deepspeed.zero;
  const bool offload = fsdp2 ? plan.framework.fsdp2.cpu_offload
                             : zero.offload_optimizer.device != OffloadDevice::none;
  const bool offload_parameters =
      fsdp2 ? plan.framework.fsdp2.cpu_offload : zero.offload_param.device != OffloadDevice::none;
  const std::int64_t layer = checked_mul(4, largest_module(model));
  if (offload && offload_parameters) return layer;
  const std::int64_t each = offload ? 2 : 18;
  return checked_add(layer, checked_mul(each, model.parameter_count()) / plan.cluster.world());
}

std::optional<std::int64_t> accelerate_estimate(const Model& model, const Plan& plan) {
  const FrameworkKind kind = plan.framework.kind;
  if (kind != FrameworkKind::single && kind != FrameworkKind::ddp) return {};
  const std::int64_t each = plan.precision.compute == DType::f32 ? 16 : 8;
  return checked_mul(each, model.parameter_count());
}

}  // namespace shardplan
