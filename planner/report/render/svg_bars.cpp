// Stacked bars over one scale, with a line that they should not pass.
#include <algorithm>
#include <numeric>

#include "report/render/markup.h"

namespace shardplan::report {
namespace {

constexpr double kLabels = 196;  ///< columns left and right of the bars
constexpr double kValues = 92;
constexpr double kBarsWidth = kFigureWidth - kLabels - kValues;
constexpr double kRow = 30, kThickness = 18, kHead = 26;
/// A bar that is longer than this many limits is cut, so that the others stay readable.
constexpr double kMostLimits = 2.5;

double length(const Bar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0,
                         [](double sum, const auto& part) { return sum + part.second; });
}

double scale_of(const Bars& bars) {
  double most = bars.limit.value_or(0);
  for (const Bar& bar : bars.bars) most = std::max({most, length(bar), bar.upper.value_or(0)});
  if (bars.limit && *bars.limit > 0) most = std::min(most, kMostLimits * *bars.limit);
  return most > 0 ? kBarsWidth / most : 0;
}

std::string draw(const Bar& bar, double y, double scale, const Messages& messages) {
  const double middle = y + kThickness / 2;
  std::string out = svg_text(0, middle + 4, Anchor::start, bar.marked ? "label here" : "label",
                             messages.cell(bar.label));
  double x = kLabels;
  const double edge = kLabels + kBarsWidth;
  for (const auto& [color, value] : bar.parts) {
    const double end = std::min(edge, x + value * scale);
    if (end > x) out += svg_rect(x, y, end - x, kThickness, "part c-" + color);
    x = end;
  }
  if (length(bar) * scale > kBarsWidth + 0.05) {
    out += svg_line(edge - 8, y - 2, edge - 12, y + kThickness + 2, "torn");
    out += svg_line(edge - 4, y - 2, edge - 8, y + kThickness + 2, "torn");
  } else if (bar.upper && *bar.upper > length(bar)) {
    const double end = std::min(edge, kLabels + *bar.upper * scale);
    out += svg_line(x, middle, end, middle, "bound");
    out += svg_line(end, middle - 5, end, middle + 5, "bound");
  }
  return out + svg_text(kFigureWidth, middle + 4, Anchor::end, bar.marked ? "value here" : "value",
                        messages.cell(bar.value));
}

}  // namespace

std::string draw_bars(const Chart& chart, const Bars& bars, const Messages& messages) {
  const double scale = scale_of(bars);
  const double head = bars.limit ? kHead : 4;
  const double height = head + kRow * static_cast<double>(bars.bars.size());
  std::string out;
  for (std::size_t i = 0; i < bars.bars.size(); ++i)
    out += draw(bars.bars[i], head + kRow * static_cast<double>(i) + (kRow - kThickness) / 2, scale,
                messages);
  if (bars.limit) {
    const double x = kLabels + *bars.limit * scale;
    out += svg_line(x, kHead - 6, x, height, "limit");
    const bool right = *bars.limit * scale > kBarsWidth / 2;
    out += svg_text(right ? x + 4 : x - 4, kHead - 12, right ? Anchor::end : Anchor::start, "note",
                    messages.text(bars.limit_label));
  }
  return svg_image(chart.id, kFigureWidth, height, messages.text(chart.title),
                   messages.text(chart.description), out);
}

}  // namespace shardplan::report
