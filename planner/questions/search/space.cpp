#include "questions/search/space.h"

#include "base/checked.h"

namespace shardplan {
namespace {

/// The first rule of the axis that rules this value out, or -1.
int ruled_out_by(const Axis& axis, const Plan& plan, std::size_t value) {
  for (std::size_t r = 0; r < axis.rules.size(); ++r)
    if (axis.rules[r].rules_out(plan, value)) return static_cast<int>(r);
  return -1;
}

}  // namespace

std::int64_t SearchSpace::below(std::size_t depth) const {
  std::int64_t count = 1;
  for (std::size_t a = depth; a < axes.size(); ++a)
    count = checked_mul(count, static_cast<std::int64_t>(axes[a].values.size()));
  return count;
}

std::int64_t SearchSpace::index_of(const Choice& choice) const {
  std::int64_t index = 0;
  for (std::size_t a = 0; a < axes.size(); ++a)
    index = index * static_cast<std::int64_t>(axes[a].values.size()) +
            static_cast<std::int64_t>(choice[a]);
  return index;
}

Choice SearchSpace::choice_at(std::int64_t index) const {
  Choice choice(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    const auto values = static_cast<std::int64_t>(axes[a].values.size());
    choice[a] = static_cast<std::size_t>(index % values);
    index /= values;
  }
  return choice;
}

Plan SearchSpace::plan_of(const Choice& choice) const {
  Plan plan = base;
  for (std::size_t a = 0; a < axes.size(); ++a) axes[a].apply(plan, choice[a]);
  return plan;
}

RuleCounts no_counts(const SearchSpace& space) {
  RuleCounts counts;
  for (const Axis& axis : space.axes) counts.emplace_back(axis.rules.size(), 0);
  return counts;
}

void walk(const SearchSpace& space, Plan& plan, Choice& choice, std::size_t from, std::size_t to,
          RuleCounts& counts, const std::function<void()>& visit) {
  if (from == to) {
    visit();
    return;
  }
  const Axis& axis = space.axes[from];
  for (std::size_t value = 0; value < axis.values.size(); ++value) {
    choice[from] = value;
    axis.apply(plan, value);
    const int rule = ruled_out_by(axis, plan, value);
    if (rule >= 0) {
      counts[from][static_cast<std::size_t>(rule)] += space.below(from + 1);
    } else {
      walk(space, plan, choice, from + 1, to, counts, visit);
    }
  }
}

}  // namespace shardplan
