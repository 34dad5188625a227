#include "record/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"
#include "launch/median.h"

namespace shardplan::validator {
namespace {

/// Of a step, without what it waited for others.
double own_seconds(const RankReport& r) {
  return r.step_seconds - r.waited_seconds;
}

const RankReport& slowest(const RunReport& report) {
  return *std::max_element(
      report.ranks.begin(), report.ranks.end(),
      [](const RankReport& a, const RankReport& b) { return own_seconds(a) < own_seconds(b); });
}

/// What core predicts of this rank.
std::optional<std::int64_t> predicted_of(const Estimate& e, const RunReport& report,
                                         const RankReport& rank) {
  const auto fullest = std::max_element(
      report.ranks.begin(), report.ranks.end(),
      [](const RankReport& a, const RankReport& b) { return a.planned.peak() < b.planned.peak(); });
  if (rank.planned.peak() < fullest->planned.peak()) return std::nullopt;
  return e.allocated.point;
}

}  // namespace

std::string nodes_text(const Estimate& e, const RunReport& report) {
  std::size_t widest = 4;
  for (const RankReport& r : report.ranks) widest = std::max(widest, r.node.size());
  std::size_t device = 2;
  for (const RankReport& r : report.ranks) device = std::max(device, r.device.name.size());
  std::string text =
      fmt::format("  {:<{}}  {:>4}  {:<{}}{:>14}{:>14}{:>14}{:>11}{:>16}\n", "node", widest, "rank",
                  "on", device, "predicted", "dry run", "measured", "step", "without waits");
  std::vector<double> own;
  for (const RankReport& r : report.ranks) {
    const auto predicted = predicted_of(e, report, r);
    text += fmt::format("  {:<{}}  {:>4}  {:<{}}{:>14}{:>14}{:>14}{:>11}{:>16}\n", r.node, widest,
                        r.rank, r.device.name, device, predicted ? format_bytes(*predicted) : "-",
                        format_bytes(r.planned.peak()), format_bytes(r.measured.peak()),
                        format_seconds(r.step_seconds), format_seconds(own_seconds(r)));
    own.push_back(own_seconds(r));
  }
  const RankReport& last = slowest(report);
  return text +
         fmt::format("  slowest: rank {} on {}, {} of a step without waits; the median is {}\n",
                     last.rank, last.node, format_seconds(own_seconds(last)),
                     format_seconds(median_of(own)));
}

Json nodes_json(const Estimate& e, const RunReport& report) {
  Json ranks = Json::array();
  for (const RankReport& r : report.ranks) {
    Json row{{"node", r.node},
             {"rank", r.rank},
             {"device", r.device.name},
             {"peak", {{"dry_run", r.planned.peak()}, {"measured", r.measured.peak()}}},
             {"step_seconds", r.step_seconds},
             {"waited_seconds", r.waited_seconds}};
    if (const auto predicted = predicted_of(e, report, r)) row["peak"]["predicted"] = *predicted;
    ranks.push_back(row);
  }
  return {{"ranks", ranks}, {"slowest_rank", slowest(report).rank}};
}

}  // namespace shardplan::validator
