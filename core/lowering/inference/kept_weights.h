// Passes without autograd over weights as a framework keeps them: whole on each GPU, or in shards
// that are gathered for use. Models that nothing trains, and a trained one between its steps.
#pragma once

#include <cstdint>

#include "lowering/segments.h"
#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// One pass. `run`: of run_pass (lowering/inference/pass.h).
struct KeptWeightsPass {
  const Model& model;
  const Plan& plan;
  const ModelRun& run;
  bool trains = false;  ///< these weights are a training step's
  /// What a framework leaves gathered behind a pass, such as FSDP1's root, is there already: an
  /// earlier pass left it, or the training step that this one interrupts.
  bool finds_kept = false;
  std::int64_t rank = 0;
};

/// Weights that are whole. Leaves nothing gathered.
std::int64_t emit_whole_pass(ProgramBuilder& b, const KeptWeightsPass& pass);
/// What is there between passes, of a model that nothing trains.
void add_whole_weights(Program& program, const KeptWeightsPass& pass);

}  // namespace shardplan
