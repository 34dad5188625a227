#include "questions/coverage.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shardplan {
namespace {

/// Bound over measured, minus one.
std::optional<double> width(const Comparison& c) {
  const auto over = [](std::int64_t upper, std::optional<double> measured) {
    return relative_error(static_cast<double>(upper), measured);
  };
  const auto device = over(c.device.upper, c.measured[index_of(Figure::device)]);
  return device ? device : over(c.reserved.upper, c.measured[index_of(Figure::reserved)]);
}

struct Widths {
  std::string name;
  std::vector<std::pair<double, const Comparison*>> runs;
};

Coverage summary(Widths& group) {
  Coverage c;
  c.name = group.name;
  c.runs = static_cast<std::int64_t>(group.runs.size());
  if (group.runs.empty()) return c;
  std::sort(group.runs.begin(), group.runs.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  c.held = std::count_if(group.runs.begin(), group.runs.end(),
                         [](const auto& run) { return run.first >= 0; });
  c.median_width = group.runs[group.runs.size() / 2].first;
  c.worst = 1 / (1 + group.runs.front().first) - 1;
  c.worst_name = group.runs.front().second->name;
  return c;
}

}  // namespace

std::vector<Coverage> coverage_of(const std::vector<Comparison>& comparisons,
                                  const std::vector<std::string>& fitted) {
  std::vector<Widths> groups;
  Widths all{"all", {}};
  for (const Comparison& c : comparisons) {
    const auto wide = width(c);
    if (!wide || std::find(fitted.begin(), fitted.end(), c.name) != fitted.end()) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Widths& g) { return g.name == c.framework; });
    if (group == groups.end()) group = groups.insert(group, Widths{c.framework, {}});
    group->runs.emplace_back(*wide, &c);
    all.runs.emplace_back(*wide, &c);
  }
  std::vector<Coverage> table;
  for (Widths& group : groups) table.push_back(summary(group));
  table.push_back(summary(all));
  return table;
}

}  // namespace shardplan
