#include "frameworks/deepspeed/engine.h"

#include <algorithm>

#include "frameworks/deepspeed/expert_groups.h"
#include "lowering/stored_weights.h"
#include "lowering/tensors.h"
#include "program/tape.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// AutoEP keeps an expert's gate and what it gates apart (moe/ep_experts.py).
std::int64_t largest_of_autoep(const Model& model) {
  std::int64_t largest = 0;
  for (const Parameter& p : model.parameters) {
    const bool both = p.kind == ParameterKind::expert && p.name.ends_with("gate_up_proj");
    if (p.trainable) largest = std::max(largest, both ? p.numel / 2 : p.numel);
  }
  return largest;
}

}  // namespace

DType parameter_type(const Plan& plan) {
  const DeepSpeedOptions& options = plan.framework.deepspeed;
  const bool moves =
      options.zero.stage == 3 && options.zero.offload_param.device != OffloadDevice::none;
  return moves ? built_type(plan) : plan.precision.params;
}

DType built_type(const Plan& plan) {
  const bool widened = plan.trainer->casts_divided_model;
  return plan.framework.deepspeed.model_dtype.value_or(widened ? DType::f32
                                                               : plan.precision.params);
}

Engine engine_of(const Model& model, const Plan& plan) {
  const DeepSpeedOptions& options = plan.framework.deepspeed;
  const Precision& precision = plan.precision;
  Engine e;
  e.ranks = plan.shard_ranks();
  if (separates_experts(plan)) e.expert_ranks = plan.replicas() / plan.parallel.expert;
  e.b = size_of(parameter_type(plan));
  e.c = size_of(options.communication_dtype.value_or(precision.params));
  e.g = size_of(options.grad_accum_dtype.value_or(precision.params));
  e.m = options.master_weights_16bit ? 2 : 4;
  e.optimizer = &plan.optimizer;
  // Momentum that DeepSpeed makes itself is of the type that gradients are reduced in (stage 3) or
  // accumulated in (get_flat_partition's dtype).
  e.state_types = {
      .plan = options.optimizer_states_16bit ? DType::bf16 : DType::f32,
      .gradient = (options.zero.stage == 3 ? options.communication_dtype : options.grad_accum_dtype)
                      .value_or(precision.params)};
  if (options.torch_autocast) e.communication_dtypes = 2;
  e.checks_overflow = precision.params == DType::f16 ||
                      (precision.params == DType::bf16 && options.check_grad_overflow);
  e.overflow_copies = e.checks_overflow && options.version < DeepSpeedVersion{0, 19, 6};
  e.bf16_optimizer = options.zero.stage == 1 && precision.params == DType::bf16 && e.g == 4 &&
                     options.zero.offload_optimizer.device == OffloadDevice::none;
  e.unfused = options.program_makes_optimizer() || options.torch_adam ||
              !plan.optimizer.kind->deepspeed.fused;
  e.trainable = model.trainable_count();
  e.largest = largest_trainable(model);
  if (plan.parallel.expert > 1 && !options.moe) e.largest = largest_of_autoep(model);
  const Quantization base = quantization_of(plan.workload);
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.trainable) e.frozen_bytes += repeat * stored_bytes(p, precision.params, base);
  });
  return e;
}

}  // namespace shardplan
