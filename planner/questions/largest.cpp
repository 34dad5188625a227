#include "questions/largest.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/diagnostic.h"
#include "parallel/problem.h"

namespace shardplan {
namespace {

using Accepts = std::function<bool(const Estimate&)>;

bool is_sure(const Estimate& e) {
  return e.verdict.fits;
}

bool is_probable(const Estimate& e) {
  return probably_fits(e.verdict);
}

/// The largest multiple of `step` in (`good`, `limit`] whose estimate is accepted: doubling, then
/// bisection between the last good and the first bad. `good` itself is known to be.
LargestResult largest_accepted(std::int64_t step, std::int64_t limit, std::int64_t good,
                               const std::function<Estimate(std::int64_t)>& estimate_of,
                               const Accepts& accepts) {
  LargestResult result;
  const std::int64_t most = limit / step;
  std::int64_t bad = good + 1, stride = 1;
  while (bad <= most) {
    Estimate e = estimate_of(bad * step);
    if (!accepts(e)) {
      result.beyond = std::move(e);
      break;
    }
    good = bad;
    result.at = std::move(e);
    if (bad == most) {
      result.at_limit = true;
      break;
    }
    bad = std::min(good + stride, most);
    stride *= 2;
  }
  while (!result.at_limit && bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    Estimate e = estimate_of(middle * step);
    if (accepts(e)) {
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

}  // namespace

LargestResult largest_fitting(std::int64_t step, std::int64_t limit,
                              const std::function<Estimate(std::int64_t)>& estimate_of,
                              StepLimit longest) {
  const auto within = [&](const Estimate& e) {
    return !longest || e.time.step_seconds <= *longest;
  };
  LargestResult surely = largest_accepted(
      step, limit, 0, estimate_of, [&](const Estimate& e) { return is_sure(e) && within(e); });
  LargestResult probably =
      largest_accepted(step, limit, surely.value.value_or(0) / step, estimate_of,
                       [&](const Estimate& e) { return is_probable(e) && within(e); });
  surely.probably = probably.value;
  surely.at_probably = probably.at ? std::move(probably.at) : surely.at;
  return surely;
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
      model.facts.longest_sequence > 0 ? std::max(model.facts.longest_sequence, step) : 1 << 24;
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
           .message = say("no decoder from {:.3g} B parameters on can be divided so: {}",
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

namespace {

/// The fewest GPUs of a plan: within one node, else in nodes as full as the cluster's.
class FewestGpus {
 public:
  FewestGpus(const Model& model, const Plan& plan, const Calibration& calibration, Accepts accepts)
      : model_(model), plan_(plan), calibration_(calibration), accepts_(std::move(accepts)) {}

  LargestResult find() {
    for (std::int64_t n = 1; n <= node_; ++n)
      if (take(n, 1)) return std::move(result_);
    // More nodes never need more memory a GPU: bisect over as many as degrees and shard groups
    // fill.
    const std::int64_t unit = nodes_filled();
    std::int64_t bad = 0, good = 1;
    while (good * unit <= kMostNodes && !fits(good * unit)) {
      bad = good;
      good *= 2;
    }
    if (good * unit > kMostNodes) return std::move(result_);
    while (good - bad > 1) {
      const std::int64_t middle = bad + (good - bad) / 2;
      (fits(middle * unit) ? good : bad) = middle;
    }
    if (bad > 0) take(node_, bad * unit);
    take(node_, good * unit);
    return std::move(result_);
  }

 private:
  static constexpr std::int64_t kMostNodes = 16'384;

  Plan plan_over(std::int64_t gpus_per_node, std::int64_t nodes) const {
    Plan changed = plan_;
    changed.cluster.gpus_per_node = gpus_per_node;
    changed.cluster.nodes = nodes;
    return changed;
  }

  std::int64_t nodes_filled() const {
    const std::int64_t ranks = plan_.parallel.model_ranks();  // which share samples, always
    const std::int64_t filled = ranks / std::gcd(ranks, node_);
    std::int64_t unit = filled;
    while (unit <= kMostNodes && division_problem(model_, plan_over(node_, unit))) unit += filled;
    return unit;
  }

  /// Nothing where so many GPUs cannot be divided so.
  std::optional<Estimate> with(std::int64_t gpus_per_node, std::int64_t nodes) const {
    const Plan changed = plan_over(gpus_per_node, nodes);
    if (division_problem(model_, changed)) return std::nullopt;
    return estimate(model_, changed, calibration_);
  }

  bool fits(std::int64_t nodes) const {
    const std::optional<Estimate> e = with(node_, nodes);
    return e && accepts_(*e);
  }

  bool take(std::int64_t gpus_per_node, std::int64_t nodes) {
    std::optional<Estimate> e = with(gpus_per_node, nodes);
    if (!e) return false;
    if (!accepts_(*e)) {
      result_.beyond = std::move(e);
      return false;
    }
    result_.value = gpus_per_node * nodes;
    result_.at = std::move(e);
    return true;
  }

  const Model& model_;
  const Plan& plan_;
  const Calibration& calibration_;
  const Accepts accepts_;
  const std::int64_t node_ = plan_.cluster.gpus_per_node;
  LargestResult result_;
};

}  // namespace

LargestResult fewest_gpus(const Model& model, const Plan& plan, const Calibration& calibration) {
  LargestResult surely = FewestGpus(model, plan, calibration, is_sure).find();
  LargestResult probably = FewestGpus(model, plan, calibration, is_probable).find();
  surely.probably = probably.value;
  surely.at_probably = std::move(probably.at);
  return surely;
}

}  // namespace shardplan
