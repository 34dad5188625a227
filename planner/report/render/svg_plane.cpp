// Plans in a plane: what each needs against what it yields.
#include <fmt/format.h>

#include <algorithm>

#include "report/render/markup.h"
#include "report/render/svg_attributes.h"
#include "report/render/ticks.h"

namespace shardplan::report {
namespace {

constexpr double kLeft = 84, kRight = 20, kPlaneTop = 30, kPlaneHeight = 240, kPlaneFoot = 44;
constexpr double kPlaneWidth = kFigureWidth - kLeft - kRight;
constexpr double kRadius = 9;

class PlanePlot {
 public:
  PlanePlot(const Plane& plane, const Messages& messages) : plane_(plane), words_(messages) {
    for (const Mark& mark : plane.marks) {
      most_x_ = std::max(most_x_, mark.x);
      most_y_ = std::max(most_y_, mark.y);
    }
    most_x_ = std::max(most_x_, plane.limit) * 1.05;
    most_y_ *= 1.12;
  }

  std::string draw() {
    axes();
    limit();
    // The first on top of those that are close to it.
    for (auto mark = plane_.marks.rbegin(); mark != plane_.marks.rend(); ++mark) draw(*mark);
    return std::move(out_);
  }

 private:
  double x(double value) const { return kLeft + kPlaneWidth * value / most_x_; }
  double y(double value) const { return kPlaneTop + kPlaneHeight * (1 - value / most_y_); }

  void axes() {
    for_each_tick(most_y_, plane_.y_unit, [&](double at, const std::string& label) {
      out_ += svg_line(kLeft, y(at), kLeft + kPlaneWidth, y(at), "grid");
      out_ += svg_text(kLeft - 8, y(at) + 4, Anchor::end, "note", label);
    });
    for_each_tick(most_x_, plane_.x_unit, [&](double at, const std::string& label) {
      out_ +=
          svg_line(x(at), kPlaneTop + kPlaneHeight, x(at), kPlaneTop + kPlaneHeight + 5, "grid");
      out_ += svg_text(x(at), kPlaneTop + kPlaneHeight + 18, Anchor::middle, "note", label);
    });
    out_ += svg_text(0, 12, Anchor::start, "note", words_.text(plane_.y_label));
    out_ += svg_text(kLeft + kPlaneWidth, kPlaneTop + kPlaneHeight + 38, Anchor::end, "note",
                     words_.text(plane_.x_label));
  }

  void limit() {
    if (plane_.limit <= 0) return;
    out_ += svg_line(x(plane_.limit), kPlaneTop - 6, x(plane_.limit), kPlaneTop + kPlaneHeight,
                     "limit");
    out_ += svg_text(x(plane_.limit), kPlaneTop - 12, Anchor::end, "note",
                     words_.text(plane_.limit_label));
  }

  void draw(const Mark& mark) {
    const std::string_view css = mark.marked ? "mark best" : "mark";
    out_ += fmt::format("<circle class=\"{}\"{} cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.0f}\"/>\n", css,
                        svg_attributes("circle", css), x(mark.x), y(mark.y), kRadius);
    out_ += svg_text(x(mark.x), y(mark.y) + 4, Anchor::middle, css, mark.label);
  }

  const Plane& plane_;
  const Messages& words_;
  double most_x_ = 0, most_y_ = 0;
  std::string out_;
};

}  // namespace

std::string draw_plane(const Chart& chart, const Plane& plane, const Messages& messages) {
  return svg_image(chart.id, kFigureWidth, kPlaneTop + kPlaneHeight + kPlaneFoot,
                   messages.text(chart.title), messages.text(chart.description),
                   PlanePlot(plane, messages).draw());
}

}  // namespace shardplan::report
