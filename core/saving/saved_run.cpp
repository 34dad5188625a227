#include "saving/saved_run.h"

#include <algorithm>
#include <cmath>

#include "frameworks/registry.h"
#include "lowering/stored_weights.h"
#include "optimizers/states.h"
#include "saving/rules.h"

namespace shardplan {
namespace {

/// Of all tensors that go into the files, in the type that they are kept in.
std::int64_t weight_bytes(const Model& model, const Plan& plan, bool frozen) {
  const Quantization base = quantization_of(plan.workload);
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.trainable || frozen)
      sum = checked_add(sum, checked_mul(stored_bytes(p, plan.kept_type(), base), repeat));
  });
  return sum;
}

std::int64_t state_bytes_of(const Model& model, const Plan& plan, bool masters) {
  const DType master = plan.precision.master.value_or(plan.precision.params);
  const StateTypes types{plan.precision.optimizer_states, plan.precision.gradients};
  const Given given = traits_of(plan).given;
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (!p.trainable) return;
    const Updated tensor{.given = given, .parameter = &p, .numel = p.numel, .whole = p.numel};
    std::int64_t bytes = state_bytes(tensor, plan.optimizer, types).total();
    if (masters) bytes = checked_add(bytes, checked_mul(p.numel, size_of(master)));
    sum = checked_add(sum, checked_mul(bytes, repeat));
  });
  return sum;
}

/// A node's part of what is cut into `parts`, a rank each.
std::int64_t part_of_node(std::int64_t bytes, std::int64_t parts, const Cluster& cluster) {
  if (parts <= cluster.gpus_per_node) return bytes;
  const double share = static_cast<double>(cluster.gpus_per_node) / static_cast<double>(parts);
  return std::llround(static_cast<double>(bytes) * share);
}

}  // namespace

std::optional<SavedRun> saved_run(const Model& model, const Plan& plan) {
  const SaveRules rules = traits_of(plan).saves(plan);
  if (rules.states == SavedBy::nobody) return std::nullopt;
  const std::int64_t apart = rules.weights_apart ? weight_bytes(model, plan, false) : 0;
  const std::int64_t weights =
      rules.weights == SavedBy::nobody ? 0 : weight_bytes(model, plan, rules.frozen);
  const std::int64_t states = state_bytes_of(model, plan, rules.masters);
  const std::int64_t world = plan.cluster.world();
  const std::int64_t model_parts = std::max<std::int64_t>(1, world / plan.replicas());
  const std::int64_t shards = std::max<std::int64_t>(1, world / plan.copies());
  const auto node = [&](std::int64_t bytes, SavedBy by) {
    return part_of_node(bytes, by == SavedBy::each_rank ? shards : model_parts, plan.cluster);
  };
  SavedRun run;
  run.weights = Bytes(checked_add(weights, apart));
  run.states = Bytes(states);
  const std::int64_t read = checked_add(node(weights, rules.weights), node(states, rules.states));
  run.written_by_node = Bytes(checked_add(read, apart));
  run.read_by_node = Bytes(read);  // the file apart is for whoever uses the model
  run.files = rules.files;
  return run;
}

}  // namespace shardplan
