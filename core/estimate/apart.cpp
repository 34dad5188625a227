#include "estimate/apart.h"

#include <algorithm>
#include <utility>

#include "estimate/assemble.h"
#include "estimate/detail.h"
#include "estimate/estimate.h"
#include "estimate/generation.h"
#include "estimate/time.h"
#include "lowering/rlhf/lower.h"
#include "simulator/memory.h"

namespace shardplan {
namespace {

bool trains(Phase phase) {
  return phase == Phase::actor_training || phase == Phase::critic_training;
}

double seconds_in(const TimeEstimate& time, bool training) {
  double sum = 0;
  for (const TimeEstimate::PhaseTime& p : time.phases)
    if (training ? trains(p.phase) : p.phase == Phase::experience) sum += p.seconds;
  return sum;
}

/// In the phase that is waited in, or in one of its own in front of those that train.
void add_waiting(TimeEstimate& time, double seconds, Phase phase) {
  if (seconds <= 0) return;
  time.step_seconds += seconds;
  time.idle_seconds += seconds;
  const auto own = std::ranges::find(time.phases, phase, &TimeEstimate::PhaseTime::phase);
  if (own != time.phases.end()) {
    own->seconds += seconds;
    return;
  }
  const auto training = std::ranges::find_if(
      time.phases, [](const TimeEstimate::PhaseTime& p) { return trains(p.phase); });
  time.phases.insert(trains(phase) ? time.phases.end() : training, {phase, seconds});
}

}  // namespace

ModelsApart estimate_apart(const Rlhf& rlhf, const RolesApart& group,
                           const Calibration& calibration) {
  const Rlhf alone = alone_on_its_gpus(rlhf, group);
  Plan plan = alone.roles.front().plan;
  plan.workload.kind = WorkKind::rlhf;
  ModelsApart out;
  out.gpus = plan.cluster.world();
  out.usable_bytes = plan.cluster.gpu.usable.count();
  for (const Role& role : alone.roles)
    out.names += (out.names.empty() ? "" : ", ") + std::string(name_of(role.kind));
  for (const RlhfPart& part : apart_parts(alone)) {
    const TimeEstimate own =
        estimate_time(part.program, part.role->plan,
                      part.scores ? without_autograd(calibration.time) : calibration.time);
    (part.scores ? out.scores_seconds : out.trains_seconds) +=
        static_cast<double>(part.times) * own.step_seconds;
  }
  const Program program = lower_apart(alone);
  const std::vector<const Program*> all{&program};
  const ReservedRuns runs = std::move(allocator_runs(plan, calibration, all).front());
  const Estimate e =
      assemble(plan, calibration, program, simulate_memory(program), &runs, TimeEstimate{});
  out.device = e.device;
  out.verdict = e.verdict;
  return out;
}

void wait_for(TimeEstimate& time, const std::vector<ModelsApart>& groups) {
  double scores = 0, training = 0;
  for (const ModelsApart& g : groups) {
    scores = std::max(scores, g.scores_seconds);
    training = std::max(training, g.trains_seconds);
  }
  add_waiting(time, scores - seconds_in(time, false), Phase::experience);
  add_waiting(time, training - seconds_in(time, true), Phase::critic_training);
}

}  // namespace shardplan
