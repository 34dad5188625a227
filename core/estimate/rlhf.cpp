#include "estimate/rlhf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "estimate/apart.h"
#include "estimate/assemble.h"
#include "estimate/detail.h"
#include "estimate/generation.h"
#include "estimate/handover_time.h"
#include "estimate/iterations.h"
#include "estimate/judge_time.h"
#include "estimate/nccl_memory.h"
#include "estimate/rollout_time.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "lowering/rlhf/lower.h"

namespace shardplan {
namespace {

/// How often a rank's stage takes its part of a pass: once, and in the turns in which the pipeline
/// fills, shared by the iteration's passes.
double turns(const RlhfPart& part) {
  const auto stages = static_cast<double>(part.role->plan.parallel.pipeline);
  const auto passes = static_cast<double>(part.times);
  return part.scores ? (passes + stages - 1) / passes : 1;
}

TimeEstimate time_of(const RlhfPart& part, const Rlhf& rlhf, const TimeRates& rates) {
  if (part.phase == Phase::generation)
    return estimate_generation_time(*rlhf.generator, rlhf.generation, rates);
  return estimate_time(part.program, part.role->plan,
                       part.scores ? without_autograd(rates) : rates);
}

/// So many times a part, in a phase; `mfu` and `hfu` of the sum are times its seconds.
void add(TimeEstimate& sum, const TimeEstimate& part, Phase phase, double times = 1) {
  constexpr std::array kSeconds{&TimeEstimate::step_seconds,
                                &TimeEstimate::compute_seconds,
                                &TimeEstimate::exposed_communication_seconds,
                                &TimeEstimate::exposed_copy_seconds,
                                &TimeEstimate::optimizer_seconds,
                                &TimeEstimate::bubble_seconds,
                                &TimeEstimate::idle_seconds,
                                &TimeEstimate::communication_seconds,
                                &TimeEstimate::speed_of_light_seconds};
  for (const auto seconds : kSeconds) sum.*seconds += times * (part.*seconds);
  sum.mfu += times * part.mfu * part.step_seconds;
  sum.hfu += times * part.hfu * part.step_seconds;
  if (sum.phases.empty() || sum.phases.back().phase != phase) sum.phases.push_back({phase, 0});
  sum.phases.back().seconds += times * part.step_seconds;
}

/// How long the trainer waits for answers that come to it while others are made: each update begins
/// when the one before has ended and its answers are there (verl, experimental/fully_async_policy/
/// fully_async_trainer.py, _get_samples_from_queue, with a staleness_threshold of 0).
double waits_for_stream(const RolloutTime& rollout, double passes, std::int64_t updates) {
  const double all = rollout.answers.step_seconds;
  const auto count = static_cast<double>(updates);
  double now = 0;
  for (std::int64_t i = 1; i <= updates; ++i) {
    const double share = static_cast<double>(i) / count;
    const double parts = rollout.portions;
    const double there = parts > 0 ? std::min(1.0, std::ceil(share * parts) / parts) : share;
    now = std::max(now, there * all) + passes / count;
  }
  return now - passes;
}

/// An iteration of a trainer and an engine with GPUs of its own, `time` being of the trainer's
/// passes alone. Both wait for the weights. Answers that may be behind are made while the trainer
/// trains, one batch ahead (verl, experimental/one_step_off_policy/ray_trainer.py, fit; NeMo RL,
/// algorithms/grpo.py, async_grpo_train; OpenRLHF, trainer/ppo_trainer_async.py); else it waits for
/// all of them.
void join(TimeEstimate& time, const RolloutTime& rollout, const Rlhf& rlhf) {
  const RolloutEngine& engine = *rlhf.rollout;
  GpuGroups g{.trainer_gpus = rlhf.roles.front().plan.cluster.world(), .engine_gpus = *engine.gpus};
  g.handover_seconds = rollout.handover.step_seconds;
  g.answers_seconds = rollout.answers.step_seconds;
  g.passes_seconds = time.step_seconds;
  g.at_once = engine.runs_ahead() || engine.streams;
  g.trainer_waits =
      engine.runs_ahead() ? std::max(0.0, g.answers_seconds - g.passes_seconds) : g.answers_seconds;
  if (engine.streams)
    g.trainer_waits = waits_for_stream(rollout, g.passes_seconds, updates_of(rlhf));
  g.engine_waits = g.passes_seconds + g.trainer_waits - g.answers_seconds;
  add(time, rollout.handover, Phase::generation);
  TimeEstimate waiting;
  waiting.step_seconds = waiting.idle_seconds = g.trainer_waits;
  add(time, waiting, Phase::generation);
  std::rotate(time.phases.begin(), time.phases.end() - 1, time.phases.end());
  // Of all GPUs: what either group multiplies, over the time that both are there.
  const auto trainer = static_cast<double>(g.trainer_gpus),
             own = static_cast<double>(g.engine_gpus);
  const double answered = rollout.answers.mfu * g.answers_seconds;
  time.mfu = (time.mfu * trainer + answered * own) / (trainer + own);
  time.hfu = (time.hfu * trainer + answered * own) / (trainer + own);
  time.groups = g;
}

/// The engine's blocks have a pool of their own in it, which is there while the engine is awake.
ReservedRuns allocator_run(const Plan& plan, const Calibration& calibration,
                           const Program& program) {
  std::vector<const Program*> all{&program};
  return std::move(allocator_runs(plan, calibration, all).front());
}

/// Of the communicator over which weights go to engines on GPUs of their own. The trainer's first
/// rank has it.
std::int64_t handover_communicator(const Rlhf& rlhf, const Calibration& calibration) {
  if (!rlhf.rollout || rlhf.rollout->at().shares_gpus || !rlhf.rollout->gpus) return 0;
  const FrameworkKind kind = rlhf.roles.front().plan.framework.kind;
  return communicator_bytes({"rollout", handover_group(rlhf), true, {}},
                            calibration.overhead_of(kind).nccl);
}

/// A job fits where the models on GPUs of their own do too: the first that does not is named.
void fail_with(const std::vector<ModelsApart>& groups, Verdict& verdict) {
  for (const ModelsApart& group : groups) {
    if (group.verdict.fits || !verdict.fits) continue;
    verdict.fits = false;
    verdict.gpu.fit = group.verdict.gpu.fit;
    verdict.limited_by = group.verdict.limited_by;
  }
}

/// All that are trained on.
double tokens_of_iteration(const Rlhf& rlhf) {
  const Plan& plan = rlhf.roles.front().plan;
  const Workload& w = plan.workload;
  return static_cast<double>(updates_of(rlhf) * plan.samples_at_once() * w.gradient_accumulation *
                             w.sequence_length);
}

DetailedEstimate estimate_of_rank(const Rlhf& rlhf, const Calibration& calibration) {
  const Plan& plan = rlhf.roles.front().plan;
  TimeEstimate time;
  std::optional<std::string_view> unknown_because;
  std::optional<RolloutTime> apart;
  for (const RlhfPart& part : rlhf_parts(rlhf)) {
    if (part.phase == Phase::generation && rlhf.rollout) {
      const RolloutTime rollout = estimate_rollout_time(rlhf, part.program, calibration.time);
      if (rollout.answers.step_seconds <= 0) unknown_because = rollout.answers.unknown_because;
      if (rlhf.rollout->at().shares_gpus) {
        add(time, rollout.handover, part.phase);
        add(time, rollout.answers, part.phase);
      } else {
        apart = rollout;
      }
      if (rlhf.judge) add(time, estimate_judge_time(rlhf, calibration.time), Phase::experience);
      continue;
    }
    const TimeEstimate own = time_of(part, rlhf, calibration.time);
    if (own.step_seconds <= 0) unknown_because = own.unknown_because;
    add(time, own, part.phase, static_cast<double>(part.times) * turns(part));
  }
  std::vector<ModelsApart> others;
  for (const RolesApart& group : rlhf.apart)
    others.push_back(estimate_apart(rlhf, group, calibration));
  if (!unknown_because) {
    wait_for(time, others);
    if (apart) join(time, *apart, rlhf);
    time.mfu /= time.step_seconds;
    time.hfu /= time.step_seconds;
    time.tokens_per_second = tokens_of_iteration(rlhf) / time.step_seconds;
  } else {
    time = {};
    time.unknown_because = *unknown_because;
  }
  const std::optional<Rlhf> longest = with_longest_answers(rlhf);
  Program program = lower_rlhf(longest ? *longest : rlhf);
  program.communicator_bytes += handover_communicator(rlhf, calibration);
  Plan iteration = plan;  // the margins and errors are those of iterations, not of the actor's step
  iteration.workload.kind = WorkKind::rlhf;
  ReservedRuns runs = allocator_run(iteration, calibration, program);
  const auto many = add_iterations(runs, program, rlhf, iteration, calibration);
  const MemoryProfile memory = simulate_memory(program);
  Estimate e = assemble(iteration, calibration, program, memory, &runs, time);
  e.iterations = many;
  if (rlhf.rollout) {  // the error of training steps says nothing of an engine's answers
    e.time.kind = "rollout";
    e.time.error.reset();
  }
  fail_with(others, e.verdict);
  e.apart = std::move(others);
  for (const Role* role : rlhf.all_roles()) {
    e.parameters += role->model.parameter_count();
    e.trainable_parameters += role->trains ? role->model.trainable_count() : 0;
    e.tensors += role->model.tensor_count();
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
