#include "render/lint_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/format.h"
#include "lint/registry.h"
#include "load/ds_config/version.h"
#include "render/table.h"

namespace shardplan {
namespace {

std::string count(int n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string finding_text(const LintFinding& finding) {
  Diagnostic d = finding.diagnostic;
  std::string place = d.file;
  if (d.position.known()) place += fmt::format(":{}:{}", d.position.line, d.position.column);
  d.file.clear();
  d.position = {};
  std::string text =
      wrapped(fmt::format("{} [{}]", to_string(d), finding.rule->id.text()),
              fmt::format("{}: {}: ", place, name_of(finding.rule->severity)), "    ");
  for (const Edit& edit : finding.edits) text += wrapped(to_string(edit), "    --fix: ", "      ");
  return text;
}

std::string bytes(std::int64_t value) {
  return value == 0 ? "-" : format_delta(value);
}

std::string pace(double factor) {
  const double percent = (factor - 1) * 100;
  if (std::abs(percent) < 0.5) return "-";
  return factor >= 2 ? fmt::format("{:.1f}x", factor) : fmt::format("{:+.0f} %", percent);
}

std::string value_text(const Json& value) {
  if (value.is_null()) return "absent";
  if (value.is_number_integer()) return format_count(value.get<std::int64_t>());
  if (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
      std::abs(value.get<double>()) < 9e15)
    return format_count(static_cast<std::int64_t>(value.get<double>()));
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Most keys are ZeRO's: the table says so once.
constexpr std::string_view kZero = "zero_optimization.";
std::string short_path(std::string_view path) {
  return std::string(path.starts_with(kZero) ? path.substr(kZero.size()) : path);
}

std::string better_text(const KeyCost& cost) {
  if (!cost.better) return "";
  return fmt::format("{}: {}", value_text(cost.better->value),
                     format_delta(cost.better->change.gpu));
}

std::string costs_text(const LintReport& report) {
  TextTable table({Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::right, Align::left});
  table.add({"", "value", "without", "GPU", "host", "NVMe", "time", "better"});
  std::string cannot;
  for (const KeyCost& cost : report.costs) {
    const PriceDelta none;
    const PriceDelta& d = cost.costs ? *cost.costs : none;
    table.add({short_path(cost.path), value_text(cost.value),
               cost.given ? value_text(cost.without) : "", bytes(d.gpu), bytes(d.host),
               bytes(d.nvme), pace(d.pace), better_text(cost)});
    if (cost.given && !cost.costs)
      cannot +=
          wrapped(fmt::format("{} cannot be left out: {}", cost.path, cost.problem), "  ", "    ");
  }
  return fmt::format(
             "What each key costs, for {} (zero_optimization's keys without their block)\n"
             "  as it is: {} of each GPU{}{}\n",
             report.subject, format_bytes(report.now->price.gpu),
             report.now->price.host > 0
                 ? fmt::format(", {} of each host", format_bytes(report.now->price.host))
                 : "",
             report.now->price.nvme > 0
                 ? fmt::format(", {} of each node's NVMe", format_bytes(report.now->price.nvme))
                 : "") +
         table.text() + cannot;
}

}  // namespace

std::string lint_text(const LintReport& report) {
  std::string text;
  for (const LintFinding& finding : report.findings) text += finding_text(finding);
  if (!text.empty()) text += "\n";
  if (report.now) {
    text += costs_text(report) + "\n";
    std::string assumed;
    for (const std::string& line : report.assumed) assumed += (assumed.empty() ? "" : "; ") + line;
    if (!assumed.empty()) text += wrapped("assumed: " + assumed, "  ", "    ") + "\n";
  }
  text +=
      fmt::format("{}, {}, {} with DeepSpeed {}\n", count(report.count(Severity::error), "error"),
                  count(report.count(Severity::warning), "warning"),
                  count(report.count(Severity::note), "note"), to_string(report.version));
  if (!report.now && !report.not_priced.empty()) text += report.not_priced.text + "\n";
  return text;
}

}  // namespace shardplan
