// Models, clusters and plans for tests of the lowering, the simulator and the estimate.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/model_config.h"
#include "load/precision.h"
#include "model/architectures/registry.h"
#include "model/builder.h"
#include "plan/plan.h"

namespace shardplan {

/// `ranks` GPUs with so much memory that nothing limits them; nodes of 8 where that divides.
inline Cluster cluster_of(std::int64_t ranks) {
  Cluster cluster;
  cluster.label = "test";
  cluster.gpu.name = "test";
  cluster.gpu.arch = "Hopper";
  cluster.gpu.compute_capability = "9.0";
  cluster.gpu.capacity = cluster.gpu.usable = Bytes(std::int64_t{1} << 55);
  cluster.gpus_per_node = ranks % 8 == 0 ? 8 : ranks;
  cluster.nodes = ranks / cluster.gpus_per_node;
  return cluster;
}

/// A plan whose optimizer keeps nothing but its states: AdamW tensor by tensor, without clipping.
inline Plan plan_of(FrameworkKind framework, std::string_view precision, std::int64_t ranks) {
  Plan plan;
  plan.cluster = cluster_of(ranks);
  plan.framework.kind = framework;
  plan.precision = precision_preset(precision);
  plan.optimizer.implementation = OptimizerImplementation::for_loop;
  plan.gradient_clipping = 0;
  plan.workload.sequence_length = 128;
  return plan;
}

inline Plan zero_plan(int stage, std::string_view precision, std::int64_t ranks) {
  Plan plan = plan_of(FrameworkKind::deepspeed, precision, ranks);
  plan.framework.deepspeed.zero.stage = stage;
  plan.framework.deepspeed.zero.overlap_comm = stage == 3;
  return plan;
}

/// `count` equal tensors of `numel` elements each: no graph, hence no activations.
inline Model equal_tensors(std::int64_t count, std::int64_t numel) {
  ModelBuilder m({});
  m.begin_repeat("layers", count);
  m.tensor("weight.value", {numel}, ParameterKind::linear);
  m.end_repeat();
  return m.build();
}

inline Model model_of(std::string_view config, const BuildOptions& options = {}) {
  return build_model(load_model_config(parse_json(config, "config.json"), "config.json"), options);
}

inline std::int64_t resident(const Estimate& e, Category category) {
  return e.breakdown[index_of(category)].resident;
}

/// What the literature calls model states.
inline std::int64_t model_states(const Estimate& e) {
  return resident(e, Category::parameters) + resident(e, Category::gradients) +
         resident(e, Category::master_parameters) + resident(e, Category::optimizer_states);
}

inline std::int64_t model_states(const Model& model, const Plan& plan) {
  return model_states(estimate(model, plan, Calibration{}));
}

}  // namespace shardplan
