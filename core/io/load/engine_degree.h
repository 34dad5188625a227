// How many GPUs can share the layers of an engine.
#pragma once

#include <cstdint>
#include <optional>

#include "model/model.h"
#include "parallel/problem.h"
#include "plan/plan.h"
#include "rollout/engine.h"

namespace shardplan {

/// Where an engine's GPUs are.
struct EngineGpus {
  std::int64_t most = 1;    ///< that an engine can have
  std::int64_t shared = 0;  ///< engines side by side take all of so many; 0: of as many as wanted
  bool beside_trainer = false;  ///< whose GPUs those are
  bool layers_divided = true;   ///< the network is estimated divided, not only counted
};

/// What is wrong with the engine's degree, without a key, and the nearest degree that would do;
/// nothing where it can be had.
std::optional<DivisionProblem> engine_degree_problem(const RolloutEngine& engine,
                                                     const Model& model, const Plan& plan,
                                                     const EngineGpus& gpus);

/// The same of the GPUs that divide its experts.
std::optional<DivisionProblem> experts_problem(const RolloutEngine& engine, const Model& model);

}  // namespace shardplan
