#include "questions/largest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/diagnostic.h"
#include "parallel/problem.h"

namespace shardplan {
namespace {

bool is_good(const Estimate& e, StepLimit most) {
  return e.verdict.fits && (!most || e.time.step_seconds <= *most);
}

}  // namespace

LargestResult largest_fitting(std::int64_t step, std::int64_t limit,
                              const std::function<Estimate(std::int64_t)>& estimate_of,
                              StepLimit longest) {
  LargestResult result;
  const std::int64_t most = limit / step;
  std::int64_t good = 0, bad = 1;
  while (bad <= most) {  // doubling, then bisection between the last good and the first bad
    Estimate e = estimate_of(bad * step);
    if (!is_good(e, longest)) {
      result.beyond = std::move(e);
      break;
    }
    good = bad;
    result.at = std::move(e);
    if (bad == most) {
      result.at_limit = true;
      break;
    }
    bad = std::min(2 * bad, most);
  }
  while (!result.at_limit && bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    Estimate e = estimate_of(middle * step);
    if (is_good(e, longest)) {
      good = middle;
      result.at = std::move(e);
    } else {
      bad = middle;
      result.beyond = std::move(e);
    }
  }
  if (good > 0) result.value = good * step;
  return result;
}

LargestResult largest_micro_batch(const Model& model, const Plan& plan,
                                  const Calibration& calibration, StepLimit most) {
  const auto with = [&](std::int64_t n) {
    Plan changed = plan;
    changed.workload.micro_batch = n;
    return estimate(model, changed, calibration);
  };
  return largest_fitting(1, 1 << 20, with, most);
}

LargestResult largest_sequence(const Model& model, const Plan& plan, const Calibration& calibration,
                               StepLimit most) {
  // Whatever shares a sequence divides it: a ring's ranks have a piece from each end.
  const Parallel& p = plan.parallel;
  const std::int64_t step = std::lcm(std::lcm(std::int64_t{128}, 2 * p.context * p.sequence),
                                     p.context * p.sequence * p.tensor);
  const std::int64_t limit =
      model.facts.max_positions > 0 ? std::max(model.facts.max_positions, step) : 1 << 24;
  const auto with = [&](std::int64_t n) {
    Plan changed = plan;
    changed.workload.sequence_length = n;
    if (changed.workload.target_length > 0) changed.workload.target_length = n;
    return estimate(model, changed, calibration);
  };
  return largest_fitting(step, limit, with, most);
}

namespace {

/// The first decoder from `parameters` on, in steps of two per cent, that the plan's degrees
/// divide. Throws what the last one lacks where none does.
Model divisible_model(const Plan& plan, std::int64_t parameters,
                      const std::function<Model(std::int64_t)>& build) {
  constexpr int kTries = 256;
  std::int64_t size = parameters;
  for (int i = 0;; ++i, size += std::max<std::int64_t>(1, size / 50)) {
    Model model = build(size);
    const auto problem = division_problem(model, plan);
    if (!problem) return model;
    if (i == kTries)
      throw InputError(
          {.key = problem->key,
           .message = fmt::format("no decoder from {:.3g} B parameters on can be "
                                  "divided so: {}",
                                  static_cast<double>(parameters) / 1e9, problem->message),
           .expected = problem->expected});
  }
}

}  // namespace

LargestResult largest_parameters(const Plan& plan, const Calibration& calibration,
                                 const std::function<Model(std::int64_t)>& build, StepLimit most) {
  constexpr std::int64_t kStep = 100'000'000;
  constexpr std::int64_t kLimit = 100'000'000'000'000;
  const auto of = [&](std::int64_t n) {
    return estimate(plan.parallel.only_data() ? build(n) : divisible_model(plan, n, build), plan,
                    calibration);
  };
  return largest_fitting(kStep, kLimit, of, most);
}

LargestResult fewest_gpus(const Model& model, const Plan& plan, const Calibration& calibration) {
  LargestResult result;
  constexpr std::int64_t kMostNodes = 16'384;
  const std::int64_t node = plan.cluster.gpus_per_node;
  const std::int64_t ranks = plan.parallel.model_ranks();  // which share samples, always
  const auto plan_over = [&](std::int64_t gpus_per_node, std::int64_t nodes) {
    Plan changed = plan;
    changed.cluster.gpus_per_node = gpus_per_node;
    changed.cluster.nodes = nodes;
    return changed;
  };
  // Nothing where so many GPUs cannot be divided so.
  const auto with = [&](std::int64_t gpus_per_node, std::int64_t nodes) -> std::optional<Estimate> {
    const Plan changed = plan_over(gpus_per_node, nodes);
    if (division_problem(model, changed)) return std::nullopt;
    return estimate(model, changed, calibration);
  };
  const auto take = [&](std::int64_t gpus_per_node, std::int64_t nodes) {
    std::optional<Estimate> e = with(gpus_per_node, nodes);
    if (e && e->verdict.fits) {
      result.value = gpus_per_node * nodes;
      result.at = std::move(e);
      return true;
    }
    if (e) result.beyond = std::move(e);
    return false;
  };
  for (std::int64_t n = 1; n <= node; ++n)
    if (take(n, 1)) return result;
  // More nodes never need more memory a GPU: bisect over as many as degrees and shard groups fill.
  const std::int64_t filled = ranks / std::gcd(ranks, node);
  std::int64_t unit = filled;
  while (unit <= kMostNodes && division_problem(model, plan_over(node, unit))) unit += filled;
  const auto fits = [&](std::int64_t units) {
    const std::optional<Estimate> e = with(node, units * unit);
    return e && e->verdict.fits;
  };
  std::int64_t bad = 0, good = 1;
  while (good * unit <= kMostNodes && !fits(good)) {
    bad = good;
    good *= 2;
  }
  if (good * unit > kMostNodes) return result;
  while (good - bad > 1) {
    const std::int64_t middle = bad + (good - bad) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  if (bad > 0) take(node, bad * unit);
  take(node, good * unit);
  return result;
}

}  // namespace shardplan
