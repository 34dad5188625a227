#include "render/accuracy_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "questions/coverage.h"
#include "render/table.h"

namespace shardplan {
namespace {

/// "+1.16 %"
std::string signed_percent(double error) {
  return fmt::format("{:+.2f} %", 100 * error);
}

std::string percent(double error) {
  return fmt::format("{:.2f} %", 100 * error);
}

std::vector<Align> columns(std::size_t left, std::size_t right) {
  std::vector<Align> all(left, Align::left);
  all.insert(all.end(), right, Align::right);
  return all;
}

/// Short for the heads of columns.
constexpr std::array<std::string_view, kFigureCount> kHeads{
    "model",    "fwd peak",       "fwd end",  "bwd peak", "bwd end",  "step peak",
    "step end", "allocated peak", "reserved", "device",   "step time"};

/// "0.05/1.16": mean of the absolute errors and the largest.
std::string mean_and_max(const ErrorSummary& s) {
  if (s.count == 0) return "-";
  return fmt::format("{:.2f}/{:.2f}", 100 * s.mean_absolute, 100 * std::abs(s.largest));
}

std::string figure_table(const Accuracy& a, std::size_t begin, std::size_t end) {
  TextTable table(columns(1, 1 + end - begin));
  std::vector<std::string> head{"", "records"};
  for (std::size_t f = begin; f < end; ++f) head.emplace_back(kHeads[f]);
  table.add(std::move(head));
  const auto add = [&](const GroupSummary& group) {
    std::vector<std::string> row{group.name, format_count(group.records)};
    for (std::size_t f = begin; f < end; ++f) row.push_back(mean_and_max(group.figures[f]));
    table.add(std::move(row));
  };
  for (const GroupSummary& group : a.groups) add(group);
  if (a.groups.size() > 1) add(a.all);
  return table.text();
}

/// "11.15 % (-2.60)": mean of the absolute errors and of the signed ones.
std::string mean_and_sign(const ErrorSummary& s) {
  return fmt::format("{} ({:+.2f})", percent(s.mean_absolute), 100 * s.mean_signed);
}

/// Steps as they are predicted, and at the pace that their hosts had between them.
std::string host_table(const Accuracy& a) {
  TextTable table(columns(1, 6));
  table.add({"", "steps", "step as predicted", "at its pace", "tokens/s as predicted",
             "at its pace", "largest"});
  for (const HostSummary& s : a.hosts)
    table.add({s.name, format_count(s.timed.count), mean_and_sign(s.predicted),
               mean_and_sign(s.timed), mean_and_sign(s.tokens_predicted),
               mean_and_sign(s.tokens_timed), signed_percent(s.tokens_timed.largest)});
  return table.text();
}

std::string worst_table(const Accuracy& a) {
  TextTable rows({Align::left, Align::right, Align::right, Align::right, Align::left});
  rows.add({"", "mean |error|", "mean error", "largest", "of record"});
  for (std::size_t f = 0; f < kFigureCount; ++f) {
    const ErrorSummary& s = a.all.figures[f];
    if (s.count == 0) continue;
    rows.add({std::string(kFigureNames[f]), percent(s.mean_absolute), signed_percent(s.mean_signed),
              signed_percent(s.largest), s.worst});
  }
  return rows.text();
}

std::string peer_table(const Accuracy& a) {
  TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::left});
  table.add(
      {"", "records", "mean |error|", "mean error", "largest", "shardplan there", "of record"});
  for (std::size_t i = 0; i < kPeerRules.size(); ++i) {
    const ErrorSummary& s = a.peers[i];
    if (s.count == 0) continue;
    table.add({std::string(kPeerRules[i].name), format_count(s.count), percent(s.mean_absolute),
               signed_percent(s.mean_signed), signed_percent(s.largest),
               percent(a.ours_on_peers[i].mean_absolute), s.worst});
  }
  const ErrorSummary& ours = a.all.figures[index_of(Figure::allocated_peak)];
  table.add({"shardplan", format_count(ours.count), percent(ours.mean_absolute),
             signed_percent(ours.mean_signed), signed_percent(ours.largest),
             percent(ours.mean_absolute), ours.worst});
  return table.text();
}

std::string coverage_table(const Accuracy& a) {
  TextTable table(
      {Align::left, Align::right, Align::right, Align::right, Align::right, Align::left});
  table.add({"", "runs", "within", "median width", "farthest beyond", "of record"});
  for (const Coverage& c : coverage_of(a.comparisons, a.bound_records))
    if (c.runs > 0)
      table.add({c.name, format_count(c.runs), fmt::format("{:.1f} %", 100 * c.share()),
                 signed_percent(c.median_width), c.worst > 0 ? signed_percent(c.worst) : "-",
                 c.worst > 0 ? c.worst_name : ""});
  return table.text();
}

/// Each run on a GPU that has a drawn share of what it took, or of what it cannot do without.
std::string verdict_table(const Accuracy& a) {
  TextTable table(columns(1, 6));
  table.add({"", "runs", "fits", "of these wrong", "tight", "does not fit", "of these wrong"});
  for (const VerdictCount& v : verdict_counts(a.comparisons))
    table.add({v.name, format_count(v.runs), format_count(v.fits), format_count(v.wrongly_fit),
               format_count(v.tight), format_count(v.refused), format_count(v.wrongly_refused)});
  return table.text();
}

std::string value_text(std::size_t figure, std::optional<double> value) {
  if (!value) return "-";
  if (static_cast<Figure>(figure) == Figure::step_seconds) return format_seconds(*value);
  return format_bytes(static_cast<std::int64_t>(*value));
}

std::string delta_text(std::size_t figure, std::optional<double> predicted,
                       std::optional<double> measured) {
  if (!predicted || !measured) return "-";
  const double delta = *predicted - *measured;
  if (static_cast<Figure>(figure) != Figure::step_seconds)
    return format_delta(static_cast<std::int64_t>(delta));
  return (delta < 0 ? "-" : "+") + format_seconds(std::abs(delta));
}

std::string details_text(const Comparison& c) {
  TextTable table(columns(1, 4));
  table.add({"", "predicted", "measured", "delta", "error"});
  for (std::size_t f = 0; f < kFigureCount; ++f) {
    if (!c.measured[f]) continue;
    const auto error = relative_error(c.predicted[f], c.measured[f]);
    table.add({std::string(kFigureNames[f]), value_text(f, c.predicted[f]),
               value_text(f, c.measured[f]), delta_text(f, c.predicted[f], c.measured[f]),
               error ? signed_percent(*error) : "-"});
  }
  return fmt::format("\n{} ({}, {}, {})\n", c.name, c.framework, c.model, c.precision) +
         table.text();
}

}  // namespace

std::string accuracy_text(const Accuracy& a, bool details) {
  if (a.comparisons.empty()) return "no record could be compared\n";
  const std::size_t peak = index_of(Figure::allocated_peak);
  std::string text = fmt::format(
      "{} records; mean of absolute errors/largest, in % of what was measured\n\n", a.all.records);
  text += "Peaks and time\n" + figure_table(a, peak, kFigureCount);
  text += "\nPhases (allocated)\n" + figure_table(a, 0, kPhaseFigures);
  if (!a.hosts.empty())
    text +=
        "\nSteps whose host was timed between them: mean error (signed) as predicted, and at its "
        "pace\n" +
        host_table(a);
  text += "\nAll records\n" + worst_table(a);
  text += "\nUpper bounds, on runs that they were not fitted to\n" + coverage_table(a);
  if (std::any_of(a.comparisons.begin(), a.comparisons.end(),
                  [](const Comparison& c) { return c.at_limit.has_value(); }))
    text +=
        "\nVerdicts on those runs, where a GPU has by draw 100 to 110 % of what each took, or 90 "
        "to 98 % "
        "of its live tensors and what is beside the allocator\n" +
        verdict_table(a);
  text += "\nOther programs' rules, against the allocated peak\n" + peer_table(a);
  if (details)
    for (const Comparison& c : a.comparisons) text += details_text(c);
  return text;
}

}  // namespace shardplan
