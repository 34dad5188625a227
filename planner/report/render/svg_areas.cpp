// Live bytes over a step: stacked areas, a panel a pass, the peak marked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "report/render/markup.h"
#include "report/render/svg_attributes.h"
#include "report/render/ticks.h"

namespace shardplan::report {
namespace {

constexpr double kAxis = 70;  ///< left of the panels
constexpr double kAreasTop = 26, kAreasHeight = 220, kAreasFoot = 24, kGap = 6;
constexpr std::size_t kNarrowest = 24;  ///< points: below it a label has no room

/// Where each panel begins, and one past the last. Time is not known: a panel is as wide as the
/// square root of its points, so that a short pass can be seen beside a long one.
std::vector<double> panel_edges(const MemoryAreas& areas) {
  std::vector<double> weights;
  for (const MemorySpan& span : areas.spans)
    weights.push_back(
        std::sqrt(static_cast<double>(std::max<std::size_t>(span.points.size(), kNarrowest))));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double room = kFigureWidth - kAxis - kGap * static_cast<double>(areas.spans.size() - 1);
  std::vector<double> edges{kAxis};
  for (const double weight : weights) edges.push_back(edges.back() + kGap + room * weight / sum);
  return edges;
}

class Plot {
 public:
  Plot(const MemoryAreas& areas, const Messages& messages)
      : areas_(areas), words_(messages), edges_(panel_edges(areas)) {
    top_ = static_cast<double>(areas.peak) * 1.04;
    const double room = static_cast<double>(areas.room);
    shows_room_ = room > 0 && room < 1.6 * top_;
    if (shows_room_) top_ = std::max(top_, room * 1.02);
  }

  std::string draw() {
    axis();
    for (std::size_t s = 0; s < areas_.spans.size(); ++s) panel(s);
    if (shows_room_) room();
    peak();
    return std::move(out_);
  }

 private:
  double y(double bytes) const { return kAreasTop + kAreasHeight * (1 - bytes / top_); }
  double left(std::size_t s) const { return edges_[s]; }
  double width(std::size_t s) const { return edges_[s + 1] - kGap - edges_[s]; }
  double x(std::size_t s, std::size_t point) const {
    const std::size_t last = areas_.spans[s].points.size() - 1;
    if (last == 0) return left(s) + width(s) / 2;
    return left(s) + width(s) * static_cast<double>(point) / static_cast<double>(last);
  }

  void axis() {
    for_each_tick(top_, Unit::bytes, [&](double at, const std::string& label) {
      out_ += svg_line(kAxis, y(at), kFigureWidth, y(at), "grid");
      out_ += svg_text(kAxis - 8, y(at) + 4, Anchor::end, "note", label);
    });
  }

  void panel(std::size_t s) {
    const MemorySpan& span = areas_.spans[s];
    std::vector<double> below(span.points.size(), 0.0);
    for (const auto& [color, label] : areas_.legend) {
      const auto category = static_cast<std::size_t>(
          std::find(kCategoryNames.begin(), kCategoryNames.end(), color) - kCategoryNames.begin());
      std::vector<double> above = below;
      bool any = false;
      for (std::size_t i = 0; i < above.size(); ++i) {
        above[i] += static_cast<double>(span.points[i][category]);
        any = any || span.points[i][category] > 0;
      }
      if (any) area(s, below, above, color);
      below = std::move(above);
    }
    out_ += svg_text(left(s) + width(s) / 2, kAreasTop + kAreasHeight + 17, Anchor::middle, "note",
                     words_.text(span.label));
  }

  /// The area between two lines; a pass of one point is as wide as its panel.
  void area(std::size_t s, const std::vector<double>& below, const std::vector<double>& above,
            const std::string& color) {
    const std::size_t n = above.size();
    if (n == 1) {
      out_ += svg_rect(left(s), y(above[0]), width(s), y(below[0]) - y(above[0]), "c-" + color);
      return;
    }
    std::string path = "M";
    for (std::size_t i = 0; i < n; ++i) path += fmt::format("{:.1f} {:.1f} ", x(s, i), y(above[i]));
    for (std::size_t i = n; i-- > 0;) path += fmt::format("{:.1f} {:.1f} ", x(s, i), y(below[i]));
    out_ += fmt::format("<path class=\"c-{}\"{} d=\"{}Z\"/>\n", color,
                        svg_attributes("path", "c-" + color), path);
  }

  void room() {
    const double at = y(static_cast<double>(areas_.room));
    out_ += svg_line(kAxis, at, kFigureWidth, at, "limit");
    out_ += svg_text(kAxis + 2, at - 5, Anchor::start, "note", words_.text(areas_.room_label));
  }

  void peak() {
    const double at = x(areas_.peak_span, areas_.peak_point);
    const double top = y(static_cast<double>(areas_.peak));
    out_ += svg_line(at, top, at, kAreasTop + kAreasHeight, "peak");
    out_ += fmt::format("<circle class=\"peak\"{} cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>\n",
                        svg_attributes("circle", "peak"), at, top);
    const bool right = at > kFigureWidth * 0.6;
    out_ += svg_text(right ? at - 8 : at + 8, top - 7, right ? Anchor::end : Anchor::start,
                     "peak-label", words_.text(areas_.peak_label));
  }

  const MemoryAreas& areas_;
  const Messages& words_;
  std::vector<double> edges_;
  double top_ = 1;
  bool shows_room_ = false;
  std::string out_;
};

}  // namespace

std::string draw_areas(const Chart& chart, const MemoryAreas& areas, const Messages& messages) {
  return svg_image(chart.id, kFigureWidth, kAreasTop + kAreasHeight + kAreasFoot,
                   messages.text(chart.title), messages.text(chart.description),
                   Plot(areas, messages).draw());
}

}  // namespace shardplan::report
