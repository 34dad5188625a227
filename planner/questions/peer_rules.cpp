#include "questions/peer_rules.h"

#include <algorithm>

#include "base/checked.h"
#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"

namespace shardplan {
namespace {

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
  const bool sharded = traits_of(plan).shards_parameters(plan);
  return checked_mul(16, model.parameter_count()) / (sharded ? plan.cluster.world() : 1);
}

std::optional<std::int64_t> deepspeed_zero2_estimate(const Model& model, const Plan& plan) {
  const PeerJob job = planning_of(plan).peers(plan);
  if (!job.zero2) return {};
  const std::int64_t parameters = model.parameter_count();
  if (job.offloads_optimizer) return checked_mul(2, parameters);
  return checked_add(checked_mul(2, parameters),
                     checked_mul(18, parameters) / plan.cluster.world());
}

std::optional<std::int64_t> deepspeed_zero3_estimate(const Model& model, const Plan& plan) {
  const PeerJob job = planning_of(plan).peers(plan);
  if (!job.zero3) return {};
  const std::int64_t layer = checked_mul(4, largest_module(model));
  if (job.offloads_optimizer && job.offloads_parameters) return layer;
  const std::int64_t each = job.offloads_optimizer ? 2 : 18;
  return checked_add(layer, checked_mul(each, model.parameter_count()) / plan.cluster.world());
}

std::optional<std::int64_t> accelerate_estimate(const Model& model, const Plan& plan) {
  if (!planning_of(plan).peers(plan).accelerate) return {};
  const std::int64_t each = plan.precision.compute == DType::f32 ? 16 : 8;
  return checked_mul(each, model.parameter_count());
}

}  // namespace shardplan
