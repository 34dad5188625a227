#include "lowering/inference/kept_weights.h"

#include "lowering/inference/pass.h"
#include "lowering/inference/weights.h"

namespace shardplan {

std::int64_t emit_whole_pass(ProgramBuilder& b, const KeptWeightsPass& pass) {
  FrozenWeights weights(pass.model, pass.plan, pass.run);
  weights.begin_pass(b);
  if (weights.are_gathered()) {
    emit_pass(b, pass.model, pass.run, weights);
  } else {
    NoHooks hooks;
    emit_pass(b, pass.model, pass.run, hooks);
  }
  weights.end_pass(b);
  return 0;
}

void add_whole_weights(Program& program, const KeptWeightsPass& pass) {
  FrozenWeights(pass.model, pass.plan, pass.run).add_residents(program);
}

}  // namespace shardplan
