#include "questions/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "estimate/generation.h"
#include "lowering/inference/generate.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "lowering/rlhf/lower.h"
#include "timing/timed_kernel.h"

namespace shardplan {
namespace {

void check_ranks(const std::vector<std::int64_t>& ranks, std::int64_t world) {
  for (const std::int64_t rank : ranks)
    if (rank < 0 || rank >= world)
      throw InputError({.key = "--rank",
                        .message = fmt::format("there is no rank {}", rank),
                        .expected = fmt::format("0 to {}", world - 1)});
}

/// The new tokens that a program runs of those that the job asks for.
std::string tokens_run(const Workload& w) {
  if (w.generation.injection)
    return fmt::format("the last of {} new tokens", w.generation.new_tokens);
  const auto run = static_cast<std::int64_t>(decode_passes(w).size());
  return run == w.generation.new_tokens
             ? fmt::format("{} new tokens", run)
             : fmt::format("{} of {} new tokens", run, w.generation.new_tokens);
}

/// The kernels of a composed program in its order, each as in its own part.
std::vector<TimedKernel> timed_parts(const Rlhf& rlhf, const std::vector<std::size_t>& order,
                                     const TimeRates& rates) {
  const std::vector<RlhfPart> parts = rlhf_parts(rlhf);
  const TimeRates off = without_autograd(rates);
  const Plan& plan = rlhf.roles.front().plan;
  std::vector<TimedKernel> all;
  for (const std::size_t i : order) {
    std::vector<TimedKernel> timed;
    time_kernels(parts[i].program.kernels, plan, parts[i].scores ? off : rates, timed);
    all.insert(all.end(), timed.begin(), timed.end());
  }
  return all;
}

void run(SimulatedRank& r, const Plan& plan, const TimeRates& rates,
         const std::vector<TimedKernel>& timed = {}) {
  r.times = simulate_time(*r.program, plan, rates, &r.trace, timed);
}

SimulatedRank simulate_iteration(const Rlhf& rlhf, const Calibration& calibration) {
  SimulatedRank r;
  r.name = "all models in turn";
  r.what = "one iteration";
  if (generates(rlhf.algorithm))
    r.what += fmt::format(", with {}", tokens_run(rlhf.generation.workload));
  std::vector<std::size_t> order;
  r.program = std::make_unique<const Program>(lower_rlhf(rlhf, &order));
  run(r, rlhf.roles.front().plan, calibration.time, timed_parts(rlhf, order, calibration.time));
  return r;
}

SimulatedRank simulate_generation(const Job& job, const Calibration& calibration) {
  SimulatedRank r;
  r.name = "rank 0";
  r.what = fmt::format("the prompt and {}", tokens_run(job.plan.workload));
  const RankModel share(job.model, job.plan);
  r.program = std::make_unique<const Program>(lower(share.model(), job.plan, share.run(), 0));
  run(r, job.plan, without_autograd(calibration.time));
  return r;
}

std::string name_of(std::int64_t rank, const Plan& plan) {
  const std::int64_t stages = plan.parallel.pipeline;
  if (stages == 1) return fmt::format("rank {}", rank);
  return fmt::format("rank {}, stage {} of {}", rank, rank / (plan.cluster.world() / stages),
                     stages);
}

}  // namespace

std::vector<SimulatedRank> simulate_job(const Job& job, const Calibration& calibration,
                                        const std::vector<std::int64_t>& ranks) {
  check_ranks(ranks, job.plan.cluster.world());
  std::vector<SimulatedRank> all;
  if (job.rlhf) {
    all.push_back(simulate_iteration(*job.rlhf, calibration));
    return all;
  }
  if (job.plan.workload.kind == WorkKind::inference) {
    all.push_back(simulate_generation(job, calibration));
    return all;
  }
  const RankModel share(job.model, job.plan);
  for (const std::int64_t rank : ranks.empty() ? distinct_ranks(share.model(), job.plan) : ranks) {
    SimulatedRank& r = all.emplace_back();
    r.rank = rank;
    r.name = name_of(rank, job.plan);
    r.what = "one step";
    r.program = std::make_unique<const Program>(lower(share.model(), job.plan, share.run(), rank));
    run(r, job.plan, calibration.time);
  }
  return all;
}

}  // namespace shardplan
