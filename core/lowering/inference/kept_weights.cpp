#include "lowering/inference/kept_weights.h"

#include "lowering/inference/pass.h"
#include "lowering/tensors.h"

namespace shardplan {

std::int64_t emit_whole_pass(ProgramBuilder& b, const KeptWeightsPass& pass) {
  NoHooks hooks;
  emit_pass(b, pass.model, pass.run, hooks);
  return 0;
}

void add_whole_weights(Program& program, const KeptWeightsPass& pass) {
  append_parameters(program.resident, pass.model, pass.plan);
}

}  // namespace shardplan
