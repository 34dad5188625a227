#include "questions/largest.h"

#include <algorithm>

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
  constexpr std::int64_t kStep = 128;
  const std::int64_t limit =
      model.facts.max_positions > 0 ? std::max(model.facts.max_positions, kStep) : 1 << 24;
  const auto with = [&](std::int64_t n) {
    Plan changed = plan;
    changed.workload.sequence_length = n;
    if (changed.workload.target_length > 0) changed.workload.target_length = n;
    return estimate(model, changed, calibration);
  };
  return largest_fitting(kStep, limit, with, most);
}

LargestResult largest_parameters(const Plan& plan, const Calibration& calibration,
                                 const std::function<Model(std::int64_t)>& build, StepLimit most) {
  constexpr std::int64_t kStep = 100'000'000;
  constexpr std::int64_t kLimit = 100'000'000'000'000;
  return largest_fitting(
      kStep, kLimit, [&](std::int64_t n) { return estimate(build(n), plan, calibration); }, most);
}

LargestResult fewest_gpus(const Model& model, const Plan& plan, const Calibration& calibration) {
  LargestResult result;
  constexpr std::int64_t kMostNodes = 16'384;
  const std::int64_t node = plan.cluster.gpus_per_node;
  const auto with = [&](std::int64_t gpus_per_node, std::int64_t nodes) {
    Plan changed = plan;
    changed.cluster.gpus_per_node = gpus_per_node;
    changed.cluster.nodes = nodes;
    return estimate(model, changed, calibration);
  };
  const auto take = [&](std::int64_t gpus_per_node, std::int64_t nodes) {
    Estimate e = with(gpus_per_node, nodes);
    if (!e.verdict.fits) {
      result.beyond = std::move(e);
      return false;
    }
    result.value = gpus_per_node * nodes;
    result.at = std::move(e);
    return true;
  };
  for (std::int64_t n = 1; n <= node; ++n)
    if (take(n, 1)) return result;
  // More nodes never need more memory a GPU: bisect over whole nodes.
  std::int64_t bad = 1, good = 2;
  while (good <= kMostNodes && !with(node, good).verdict.fits) {
    bad = good;
    good *= 2;
  }
  if (good > kMostNodes) return result;
  while (good - bad > 1) {
    const std::int64_t middle = bad + (good - bad) / 2;
    (with(node, middle).verdict.fits ? good : bad) = middle;
  }
  take(node, bad);
  take(node, good);
  return result;
}

}  // namespace shardplan
