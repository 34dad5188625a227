#include "frameworks/deepspeed/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "frameworks/registry.h"
#include "load/precision.h"

namespace shardplan {
namespace {

const ZeroOptions& own_zero(const Plan& plan) {
  return plan.framework.deepspeed.zero;
}

void add_buckets(std::vector<Change>& changes, const Model& model, const Plan& plan) {
  if (own_zero(plan).stage == 0) return;
  const std::int64_t hidden = model.facts.hidden;
  if (hidden == 0 || own_zero(plan).reduce_bucket_size <= hidden * hidden) return;
  changes.push_back({"buckets sized to the model, as HF Trainer's \"auto\" does",
                     fmt::format("reduce_bucket_size: {0}, stage3_prefetch_bucket_size: {1}, "
                                 "stage3_param_persistence_threshold: {2}",
                                 hidden * hidden, hidden * hidden * 9 / 10, 10 * hidden),
                     [hidden](Plan& p) {
                       ZeroOptions& zero = p.framework.deepspeed.zero;
                       zero.reduce_bucket_size = hidden * hidden;
                       zero.prefetch_bucket_size = hidden * hidden * 9 / 10;
                       zero.param_persistence_threshold = 10 * hidden;
                     },
                     "buckets"});
}

/// What the prefetcher keeps over the turn is at least what the distance would keep, so that
/// another distance changes nothing (GatherPlan::kept_room).
bool prefetches_past_reuse(const Model& model, const ZeroOptions& zero) {
  if (zero.prefetch_bucket_size <= 0) return false;
  if (zero.max_live_parameters <= zero.max_reuse_distance / 2) return false;
  return std::ranges::all_of(model.modules, [&](const Module& module) {
    std::int64_t elements = 0;
    for (const ParameterId id : module.parameters)
      elements += model.parameters[static_cast<std::size_t>(id)].numel;
    return elements < zero.max_live_parameters;
  });
}

void add_reuse(std::vector<Change>& changes, const Model& model, const Plan& plan) {
  const ZeroOptions& zero = own_zero(plan);
  if (zero.stage != 3 || zero.max_reuse_distance == 0) return;
  if (prefetches_past_reuse(model, zero)) return;
  changes.push_back({"no parameters kept from forward to backward",
                     "zero_optimization.stage3_max_reuse_distance: 0",
                     [](Plan& p) { p.framework.deepspeed.zero.max_reuse_distance = 0; }, "reuse"});
}

}  // namespace

void deepspeed_changes(std::vector<Change>& changes, const Model& model, const Plan& plan) {
  add_buckets(changes, model, plan);
  add_reuse(changes, model, plan);
}

void deepspeed_offloads(std::vector<Change>& changes, const Plan& plan) {
  if (own_zero(plan).stage == 0) return;
  const ZeroOptions& zero = own_zero(plan);
  const bool optimizer_here = zero.offload_optimizer.device == OffloadDevice::none;
  const bool parameters_here = zero.offload_param.device == OffloadDevice::none;
  if (optimizer_here)
    changes.push_back(
        {"optimizer states on the host", "zero_optimization.offload_optimizer.device: cpu",
         [](Plan& p) { set_offload(p, OffloadDevice::cpu, OffloadDevice::none); }, "offload"});
  if (zero.stage == 3 && parameters_here)
    changes.push_back({"optimizer states and parameters on the host",
                       "zero_optimization.offload_optimizer.device and offload_param.device: cpu",
                       [](Plan& p) { set_offload(p, OffloadDevice::cpu, OffloadDevice::cpu); },
                       "offload"});
}

void set_zero_stage(Plan& plan, int stage) {
  if (!traits_of(plan).has_zero) {
    const bool half = plan.precision.compute == DType::f16;
    const bool full = plan.precision.compute == DType::f32;
    plan.precision = precision_preset(full ? "fp32" : half ? "fp16-master" : "bf16-master");
    plan.framework = {};
    plan.framework.kind = FrameworkKind::deepspeed;
  }
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.stage = stage;
  zero.overlap_comm = stage == 3;
  if (stage == 0) zero.offload_optimizer = {};
  if (stage < 3) zero.offload_param = {};
}

void set_offload(Plan& plan, OffloadDevice optimizer, OffloadDevice parameters) {
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.offload_optimizer.device = optimizer;
  // MiCS sums gradients over its copies on GPUs only.
  if (optimizer != OffloadDevice::none && plan.copies() > 1) zero.mics_shard_size = -1;
  zero.offload_param.device = parameters;
}

void stream_weights(Plan& plan) {
  if (!traits_of(plan).has_zero) {
    plan.framework = {};
    plan.framework.kind = FrameworkKind::deepspeed;
  }
  plan.framework.deepspeed.zero.stage = 3;
  plan.framework.deepspeed.zero.overlap_comm = true;
  plan.framework.deepspeed.zero.offload_param.device = OffloadDevice::cpu;
  plan.workload.generation.weights = Quantization::none;
}

}  // namespace shardplan
