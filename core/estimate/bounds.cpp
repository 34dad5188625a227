#include "estimate/bounds.h"

#include "estimate/time.h"
#include "simulator/memory.h"

namespace shardplan {
namespace {

struct NoHooks {};

}  // namespace

LeastWork least_work(const Plan& plan, const Passes& passes, const TimeRates& rates) {
  if (plan.parallel.pipeline > 1) return {};  // a stage does a part of it, and holds several
  const Model& model = passes.rank.model();
  const ModelRun& run = passes.rank.run();
  const std::vector<Stretch> forward = whole_segments(run);
  const std::vector<Stretch> backward(forward.rbegin(), forward.rend());
  Program program = program_of(run);
  ProgramBuilder b(program);
  NoHooks hooks;
  b.begin_repeat(plan.workload.gradient_accumulation);
  b.begin_phase(Phase::forward);
  emit_forward(b, model, run, forward, hooks);
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  emit_backward(b, model, run, backward, hooks);
  b.end_phase(Phase::backward);
  b.end_repeat();
  return {simulate_memory(program).peak,
          estimate_time(program, plan, passes, rates).compute_seconds};
}

}  // namespace shardplan
