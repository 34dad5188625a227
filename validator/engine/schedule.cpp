#include "engine/schedule.h"

#include <algorithm>
#include <cmath>

namespace shardplan::validator {
namespace {

/// Where between the smallest and the largest rate a warmup is; nullopt: it is over. `last` counts
/// the steps since the schedule was first advanced.
std::optional<double> warmth(const Warmup& w, std::int64_t last) {
  const std::int64_t steps = std::max<std::int64_t>(2, w.steps);
  if (last < 0) return 0.0;
  if (last >= steps) return std::nullopt;
  const double t = static_cast<double>(last);
  return w.logarithmic ? std::log(t + 1) / std::log(static_cast<double>(steps))
                       : t / static_cast<double>(steps);
}

double between(double smallest, double largest, double share) {
  return smallest + (largest - smallest) * share;
}

/// Height in the cycle, 0 at its ends and 1 at its peak, in stairs if there are any.
double height(const OneCycleLr& c, std::int64_t step) {
  const std::int64_t total = c.first_steps + c.second_steps;
  const std::int64_t at = step % total;
  const bool rising = at <= c.first_steps;
  const double position = static_cast<double>(rising ? at : total - at);
  const double steps = static_cast<double>(rising ? c.first_steps : c.second_steps);
  const std::int64_t stairs = rising ? c.first_stairs : c.second_stairs;
  if (stairs == 0) return position / steps;
  const double count = static_cast<double>(stairs);
  return std::floor(position * count / steps) / count;
}

Rate rate(const ConstantLr& s, std::int64_t) {
  return {s.rate, {}};
}

Rate rate(const WarmupLr& s, std::int64_t taken) {
  return {between(s.warmup.smallest, s.warmup.largest, warmth(s.warmup, taken - 1).value_or(1)),
          {}};
}

Rate rate(const WarmupDecayLr& s, std::int64_t taken) {
  const std::int64_t last = taken - 1;
  const std::int64_t warm = std::max<std::int64_t>(2, s.warmup.steps);
  const double left = static_cast<double>(s.total_steps - last) /
                      static_cast<double>(std::max<std::int64_t>(1, s.total_steps - warm));
  const double share = warmth(s.warmup, last).value_or(std::max(0.0, left));
  return {between(s.warmup.smallest, s.warmup.largest, share), {}};
}

Rate rate(const OneCycleLr& s, std::int64_t taken) {
  const std::int64_t total = s.first_steps + s.second_steps;
  const std::int64_t last = taken - 1;
  Rate r;
  double momentum = s.largest_momentum;
  if (last < total) {
    const double h = height(s, taken);
    r.learning_rate = between(s.smallest, s.largest, h);
    momentum = between(s.largest_momentum, s.smallest_momentum, h);
  } else {
    const double intervals = s.decay_steps > 0 ? static_cast<double>(last - total + 1) /
                                                     static_cast<double>(s.decay_steps)
                                               : 0;
    r.learning_rate = s.smallest / (1 + s.decay_rate * intervals);
    momentum *= 1 + s.momentum_decay_rate * intervals;
  }
  // Before the first advance the optimizer has the lowest momentum.
  if (taken == 0) momentum = s.smallest_momentum;
  if (s.cycle_momentum) r.momentum = Rate::Momentum{momentum, 0.99};
  return r;
}

Rate rate(const LrRangeTest& s, std::int64_t taken) {
  double intervals = static_cast<double>(taken) / static_cast<double>(s.step_size);
  if (s.staircase) intervals = std::floor(intervals);
  return {s.smallest * (1 + s.step_rate * intervals), {}};
}

}  // namespace

Rate rate_of(const Schedule& schedule, std::int64_t taken) {
  return std::visit([&](const auto& s) { return rate(s, taken); }, schedule);
}

}  // namespace shardplan::validator
