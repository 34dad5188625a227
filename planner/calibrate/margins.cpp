#include "calibrate/margins.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace shardplan {
namespace {

/// Fewer runs than this say less than those of all frameworks together.
constexpr std::size_t kFewestRuns = 15;

using Runs = std::vector<const Comparison*>;
using Key = std::pair<AllocatorRegime, std::string_view>;

/// Measured over predicted; nothing where either is missing.
std::optional<double> ratio(const Comparison& c, Figure figure) {
  const auto error = relative_error(c.measured[index_of(figure)], c.predicted[index_of(figure)]);
  return error ? std::optional(1 + *error) : std::nullopt;
}

/// Of reserved memory without what chance may `hold`; over what neighbours hold, which is `more`
/// than predicted, times what is of this program alone (`over`).
std::optional<double> reserved_ratio(const Comparison& c, std::int64_t hold, std::int64_t more,
                                     double over) {
  auto measured = c.measured[index_of(Figure::reserved)];
  auto predicted = c.predicted[index_of(Figure::reserved)];
  if (measured) *measured -= static_cast<double>(hold);
  if (predicted) *predicted = (*predicted + static_cast<double>(more)) * over;
  const auto error = relative_error(measured, predicted);
  return error ? std::optional(1 + *error) : std::nullopt;
}

std::optional<double> ratio_to_most(const Comparison& c) {
  return reserved_ratio(c, c.held_at_most,
                        c.neighbours ? c.neighbours->upper - c.neighbours->point : 0,
                        c.reserved_over);
}

/// At least, chance holds nothing.
std::optional<double> ratio_to_least(const Comparison& c) {
  return reserved_ratio(c, 0, c.neighbours ? c.neighbours->least - c.neighbours->point : 0, 1);
}

std::optional<double> allocated_ratio(const Comparison& c) {
  return ratio(c, Figure::allocated_peak);
}

using RatioOf = std::optional<double> (*)(const Comparison&);

std::vector<double> sorted_ratios(const Runs& runs, RatioOf ratio_of) {
  std::vector<double> ratios;
  for (const Comparison* c : runs)
    if (const auto r = ratio_of(*c)) ratios.push_back(*r);
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

/// How many of n + 1 runs are to be within.
std::size_t rank_of(std::size_t runs) {
  const double rank = std::ceil(kMarginLevel * static_cast<double>(runs + 1));
  return std::min(static_cast<std::size_t>(rank), runs);
}

constexpr double kSteps = 1000;  ///< margins are in thousandths

/// At least 1.
double at_most(const Runs& runs, RatioOf ratio_of) {
  const std::vector<double> ratios = sorted_ratios(runs, ratio_of);
  if (ratios.empty()) return 1;
  return std::max(1.0, std::ceil(kSteps * ratios[rank_of(ratios.size()) - 1]) / kSteps);
}

/// At most 1.
double at_least(const Runs& runs, RatioOf ratio_of) {
  const std::vector<double> ratios = sorted_ratios(runs, ratio_of);
  if (ratios.empty()) return 1;
  const double ratio = ratios[ratios.size() - rank_of(ratios.size())];
  return std::min(1.0, std::floor(kSteps * ratio) / kSteps);
}

Margin margin_of(const Runs& runs, Key key) {
  return {std::string(key.second),        key.first,
          at_least(runs, ratio_to_least), at_most(runs, ratio_to_most),
          at_most(runs, allocated_ratio), static_cast<std::int64_t>(runs.size())};
}

/// Of a regime that is a kind of another and of which few runs are known, the other's too.
Runs runs_of(const Runs& runs, AllocatorRegime regime) {
  const auto of = [&](AllocatorRegime wanted) {
    Runs some;
    for (const Comparison* c : runs)
      if (c->regime == wanted) some.push_back(c);
    return some;
  };
  Runs own = of(regime);
  if (regime != AllocatorRegime::copies || own.size() >= kFewestRuns) return own;
  const Runs streams = of(AllocatorRegime::streams);
  own.insert(own.end(), streams.begin(), streams.end());
  return own;
}

/// What few runs have shown is no more than the most that any have.
void widen_thin(std::vector<Margin>& margins) {
  Margin widest;
  for (const Margin& m : margins) {
    widest.least = std::min(widest.least, m.least);
    widest.reserved = std::max(widest.reserved, m.reserved);
    widest.allocated = std::max(widest.allocated, m.allocated);
  }
  for (Margin& m : margins) {
    if (m.runs >= static_cast<std::int64_t>(kFewestRuns)) continue;
    m.least = widest.least;
    m.reserved = widest.reserved;
    m.allocated = widest.allocated;
  }
}

std::map<Key, Runs> by_framework(const Runs& runs) {
  std::map<Key, Runs> groups;
  for (const Comparison* c : runs) groups[{*c->regime, c->framework_name}].push_back(c);
  return groups;
}

}  // namespace

std::vector<const Comparison*> fit_half(const std::vector<Comparison>& comparisons) {
  Runs simulated, half;
  for (const Comparison& c : comparisons)
    if (c.regime && ratio(c, Figure::reserved)) simulated.push_back(&c);
  for (auto& [key, runs] : by_framework(simulated)) {
    std::sort(runs.begin(), runs.end(),
              [](const Comparison* a, const Comparison* b) { return a->name < b->name; });
    for (std::size_t i = 0; i < runs.size(); i += 2) half.push_back(runs[i]);
  }
  return half;
}

std::vector<const Comparison*> those_named(const std::vector<Comparison>& comparisons,
                                           const std::vector<std::string>& names) {
  Runs named;
  for (const Comparison& c : comparisons)
    if (c.regime && std::find(names.begin(), names.end(), c.name) != names.end())
      named.push_back(&c);
  return named;
}

std::vector<const Comparison*> those_renewed(const std::vector<Comparison>& comparisons,
                                             const std::vector<std::string>& names,
                                             std::string_view framework, AllocatorRegime regime) {
  const auto renewed = [&](const Comparison* c) {
    return c->framework_name == framework && c->regime == regime;
  };
  Runs runs = those_named(comparisons, names);
  std::erase_if(runs, renewed);
  for (const Comparison* c : fit_half(comparisons))
    if (renewed(c)) runs.push_back(c);
  return runs;
}

std::vector<Margin> fit_margins(const std::vector<const Comparison*>& runs) {
  std::vector<Margin> margins;
  for (std::size_t r = 0; r < kRegimeNames.size(); ++r) {
    const auto regime = static_cast<AllocatorRegime>(r);
    const Runs all = runs_of(runs, regime);
    margins.push_back(margin_of(all, {regime, ""}));
    for (const auto& [key, own] : by_framework(all))
      if (key.first == regime && own.size() >= kFewestRuns) margins.push_back(margin_of(own, key));
  }
  widen_thin(margins);
  return margins;
}

namespace {

/// Blocks of the allocator are rounded up, which small tensors show. Chosen with all records in
/// view.
constexpr double kCounted = 0.005;

/// Of what stays between steps; where there are none, of the model.
bool was_counted(const Comparison& c) {
  const auto error = [&](Figure figure) {
    return relative_error(c.predicted[index_of(figure)], c.measured[index_of(figure)]);
  };
  const auto states = error(Figure::step_end);
  const auto told = states ? states : error(Figure::model);
  return told && std::abs(*told) <= kCounted;
}

}  // namespace

std::vector<Confirmed> confirmed_features(const std::vector<Comparison>& runs) {
  std::map<std::string_view, std::set<std::string>> features;
  for (const Comparison& c : runs)
    if (was_counted(c)) features[c.framework_name].insert(c.features.begin(), c.features.end());
  std::vector<Confirmed> confirmed;
  for (const auto& [framework, of] : features)
    confirmed.push_back({std::string(framework), {of.begin(), of.end()}});
  return confirmed;
}

std::vector<StepError> step_errors(const std::vector<Comparison>& runs) {
  std::map<std::string, std::vector<const Comparison*>> kinds;
  for (const Comparison& c : runs) kinds[c.step_kind].push_back(&c);
  const auto rounded = [](double share) { return std::round(share * 1000) / 1000; };
  std::vector<StepError> errors;
  for (const auto& [kind, of_kind] : kinds) {
    const ErrorSummary s = summary_of(of_kind).figures[index_of(Figure::step_seconds)];
    if (s.count > 0)
      errors.push_back({kind, s.count, rounded(s.mean_absolute), rounded(s.largest)});
  }
  return errors;
}

}  // namespace shardplan
