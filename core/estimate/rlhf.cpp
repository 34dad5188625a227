#include "estimate/rlhf.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "estimate/assemble.h"
#include "estimate/detail.h"
#include "estimate/generation.h"
#include "estimate/rollout_time.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "lowering/rlhf/lower.h"

namespace shardplan {
namespace {

TimeEstimate time_of(const RlhfPart& part, const Rlhf& rlhf, const TimeRates& rates) {
  if (part.phase == Phase::generation && rlhf.rollout)
    return estimate_rollout_time(rlhf, part.program, rates);
  if (part.phase == Phase::generation)
    return estimate_generation_time(*rlhf.generator, rlhf.generation, rates);
  return estimate_time(part.program, part.role->plan,
                       part.scores ? without_autograd(rates) : rates);
}

void add(TimeEstimate& sum, const TimeEstimate& part, Phase phase) {
  sum.step_seconds += part.step_seconds;
  sum.compute_seconds += part.compute_seconds;
  sum.exposed_communication_seconds += part.exposed_communication_seconds;
  sum.exposed_copy_seconds += part.exposed_copy_seconds;
  sum.optimizer_seconds += part.optimizer_seconds;
  sum.idle_seconds += part.idle_seconds;
  sum.communication_seconds += part.communication_seconds;
  sum.speed_of_light_seconds += part.speed_of_light_seconds;
  sum.mfu += part.mfu * part.step_seconds;
  sum.hfu += part.hfu * part.step_seconds;
  if (sum.phases.empty() || sum.phases.back().phase != phase) sum.phases.push_back({phase, 0});
  sum.phases.back().seconds += part.step_seconds;
}

/// The engine's blocks have a pool of their own in it, which is there while the engine is awake.
ReservedRuns allocator_run(const Plan& plan, const Calibration& calibration,
                           const Program& program) {
  std::vector<const Program*> all{&program};
  return std::move(allocator_runs(plan, calibration, all).front());
}

}  // namespace

namespace {

DetailedEstimate estimate_of_rank(const Rlhf& rlhf, const Calibration& calibration) {
  const Plan& plan = rlhf.roles.front().plan;
  TimeEstimate time;
  std::optional<std::string_view> unknown_because;
  for (const RlhfPart& part : rlhf_parts(rlhf)) {
    const TimeEstimate own = time_of(part, rlhf, calibration.time);
    if (own.step_seconds <= 0) unknown_because = own.unknown_because;
    for (std::int64_t k = 0; k < part.times; ++k) add(time, own, part.phase);
  }
  const Workload& w = plan.workload;
  if (!unknown_because) {
    time.mfu /= time.step_seconds;
    time.hfu /= time.step_seconds;
    time.tokens_per_second = static_cast<double>(w.micro_batch * w.gradient_accumulation *
                                                 w.sequence_length * plan.cluster.world()) /
                             time.step_seconds;
  } else {
    time = {};
    time.unknown_because = *unknown_because;
  }
  Program program = lower_rlhf(rlhf);
  Plan iteration = plan;  // the margins and errors are those of iterations, not of the actor's step
  iteration.workload.kind = WorkKind::rlhf;
  const ReservedRuns runs = allocator_run(iteration, calibration, program);
  const MemoryProfile memory = simulate_memory(program);
  Estimate e = assemble(iteration, calibration, program, memory, &runs, time);
  if (rlhf.rollout) {  // the error of training steps says nothing of an engine's answers
    e.time.kind = "rollout";
    e.time.error.reset();
  }
  for (const Role& role : rlhf.roles) {
    e.parameters += role.model.parameter_count();
    e.trainable_parameters += role.trains ? role.model.trainable_count() : 0;
    e.tensors += role.model.tensor_count();
  }
  return {std::move(e), {}, std::move(program)};
}

}  // namespace

DetailedEstimate estimate_in_detail(const Rlhf& rlhf, const Calibration& calibration) {
  const Role& actor = rlhf.roles.front();
  DetailedEstimate worst = estimate_of_rank(rlhf, calibration);
  if (actor.plan.parallel.pipeline == 1) return worst;
  const RankModel share(actor.model, actor.plan);
  Rlhf other = rlhf;
  for (const std::int64_t rank : distinct_ranks(share.model(), actor.plan)) {
    if (rank == rlhf.rank) continue;
    other.rank = rank;
    DetailedEstimate one = estimate_of_rank(other, calibration);
    if (one.estimate.device.point > worst.estimate.device.point) worst = std::move(one);
  }
  return worst;
}

Estimate estimate_rlhf(const Rlhf& rlhf, const Calibration& calibration) {
  return estimate_in_detail(rlhf, calibration).estimate;
}

}  // namespace shardplan
