#include "questions/search/reasons.h"

#include <cmath>
#include <optional>
#include <utility>

#include "base/diagnostic.h"

namespace shardplan {
namespace {

constexpr double kWorthSaying = 0.01;

/// The plan of a choice, unless a rule rules it out.
std::optional<Plan> allowed_plan(const SearchSpace& space, const Choice& choice) {
  Plan plan = space.base;
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    space.axes[a].apply(plan, choice[a]);
    for (const AxisRule& rule : space.axes[a].rules)
      if (rule.rules_out(plan, choice[a])) return std::nullopt;
  }
  return plan;
}

double seconds_per_token(const Plan& plan, const Estimate& e) {
  return e.time.step_seconds / tokens_per_step(plan);
}

bool makes_a_difference(const OtherChoice& other, const Found& found) {
  const double bytes =
      static_cast<double>(other.gpu_added) / static_cast<double>(found.estimate.device.point);
  return !other.estimate.verdict.fits || std::abs(bytes) >= kWorthSaying ||
         (other.slowdown > 0 && std::abs(other.slowdown - 1) >= kWorthSaying);
}

}  // namespace

std::vector<OtherChoice> other_choices(const ModelVariants& models, const SearchSpace& space,
                                       const Found& found, const Calibration& calibration) {
  std::vector<OtherChoice> all;
  const double now = seconds_per_token(found.plan, found.estimate);
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    const std::size_t chosen = found.choice[a];
    for (const std::size_t value : {chosen - 1, chosen + 1}) {  // 0 - 1 is past the end, too
      if (value >= space.axes[a].values.size()) continue;
      Choice choice = found.choice;
      choice[a] = value;
      const std::optional<Plan> plan = allowed_plan(space, choice);
      if (!plan) continue;
      OtherChoice other{a, value, {}};
      try {
        other.estimate = estimate(models.of(*plan), *plan, calibration);
      } catch (const InputError&) {  // the framework refuses it
        continue;
      }
      if (now > 0) other.slowdown = seconds_per_token(*plan, other.estimate) / now;
      other.gpu_added = other.estimate.device.point - found.estimate.device.point;
      if (makes_a_difference(other, found)) all.push_back(std::move(other));
    }
  }
  return all;
}

}  // namespace shardplan
