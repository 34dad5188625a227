#include "views/pareto_plot.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QLineF>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "views/widgets.h"

namespace shardplan::gui {
namespace {

constexpr double kLeft = 76, kRight = 14, kTop = 12, kBottom = 40;
constexpr double kReach = 14;  // pixels from a point that still mean it

/// A step of 1, 2 or 5 times a power of ten that makes about five ticks.
double tick_step(double most) {
  const double rough = most / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

}  // namespace

ParetoPlot::ParetoPlot(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
}

void ParetoPlot::set_axes(Axis x, Axis y) {
  x_ = std::move(x);
  y_ = std::move(y);
}

void ParetoPlot::set_points(std::vector<PlotPoint> points, double limit) {
  points_ = std::move(points);
  limit_ = limit;
  most_x_ = std::max(limit, 1e-30);
  most_y_ = 1e-30;
  for (const PlotPoint& p : points_) {
    most_x_ = std::max(most_x_, p.x);
    most_y_ = std::max(most_y_, p.y);
  }
  most_x_ *= 1.06;
  most_y_ *= 1.1;
  from_left_.resize(points_.size());
  std::iota(from_left_.begin(), from_left_.end(), 0);
  std::stable_sort(from_left_.begin(), from_left_.end(), [this](int a, int b) {
    return points_[static_cast<std::size_t>(a)].x < points_[static_cast<std::size_t>(b)].x;
  });
  selected_ = -1;
  setAccessibleDescription(tr("%1 plans").arg(points_.size()));
  update();
}

void ParetoPlot::select(int point) {
  if (point == selected_ || point >= static_cast<int>(points_.size())) return;
  selected_ = point;
  if (point >= 0) setAccessibleDescription(spoken(points_[static_cast<std::size_t>(point)].hint));
  update();
  Q_EMIT selection_changed(point);
}

QRectF ParetoPlot::plot() const {
  return QRectF(kLeft, kTop, std::max(10.0, width() - kLeft - kRight),
                std::max(10.0, height() - kTop - kBottom));
}

QPointF ParetoPlot::place_of(const PlotPoint& p) const {
  const QRectF area = plot();
  return {area.left() + area.width() * p.x / most_x_,
          area.bottom() - area.height() * p.y / most_y_};
}

int ParetoPlot::point_at(const QPointF& position) const {
  int nearest = -1;
  double least = kReach;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const double distance = QLineF(place_of(points_[i]), position).length();
    if (distance >= least) continue;
    least = distance;
    nearest = static_cast<int>(i);
  }
  return nearest;
}

void ParetoPlot::paint_axes(QPainter& painter) const {
  const QRectF area = plot();
  const QColor ink = palette().color(QPalette::WindowText);
  const auto grid = palette().color(QPalette::Mid);
  for (double x = 0, step = tick_step(most_x_); x < most_x_; x += step) {
    const double at = area.left() + area.width() * x / most_x_;
    painter.setPen(QPen(grid, 1, Qt::DotLine));
    painter.drawLine(QPointF(at, area.top()), QPointF(at, area.bottom()));
    painter.setPen(ink);
    painter.drawText(QRectF(at - 45, area.bottom() + 2, 90, 16), Qt::AlignHCenter,
                     x_.text_of ? x_.text_of(x) : QString::number(x));
  }
  for (double y = 0, step = tick_step(most_y_); y < most_y_; y += step) {
    const double at = area.bottom() - area.height() * y / most_y_;
    painter.setPen(QPen(grid, 1, Qt::DotLine));
    painter.drawLine(QPointF(area.left(), at), QPointF(area.right(), at));
    painter.setPen(ink);
    painter.drawText(QRectF(0, at - 8, kLeft - 6, 16), Qt::AlignRight | Qt::AlignVCenter,
                     y_.text_of ? y_.text_of(y) : QString::number(y));
  }
  painter.drawText(QRectF(area.left(), area.bottom() + 20, area.width(), 18), Qt::AlignCenter,
                   x_.title);
  painter.save();
  painter.translate(10, area.center().y());
  painter.rotate(-90);
  painter.drawText(QRectF(-area.height() / 2, -8, area.height(), 16), Qt::AlignCenter, y_.title);
  painter.restore();
  painter.setPen(hasFocus() ? palette().color(QPalette::Highlight) : grid);
  painter.drawRect(area);
}

void ParetoPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(plot(), palette().base());
  if (points_.empty()) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(plot(), Qt::AlignCenter | Qt::TextWordWrap,
                     tr("The best trade-offs will appear here as points."));
    return;
  }
  paint_axes(painter);
  const QColor ink = palette().color(QPalette::WindowText);
  if (limit_ > 0) {
    painter.setPen(QPen(ink, 1.5, Qt::DashLine));
    const double x = place_of({limit_, 0, {}, {}}).x();
    painter.drawLine(QPointF(x, plot().top()), QPointF(x, plot().bottom()));
  }
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const bool is_selected = static_cast<int>(i) == selected_;
    painter.setPen(QPen(ink, is_selected ? 2 : 1));
    painter.setBrush(QColor(0x00, 0x72, 0xb2));
    if (is_selected) painter.setBrush(QColor(0xd5, 0x5e, 0x00));
    painter.drawEllipse(place_of(points_[i]), is_selected ? 7 : 4.5, is_selected ? 7 : 4.5);
  }
  if (selected_ < 0) return;
  const PlotPoint& p = points_[static_cast<std::size_t>(selected_)];
  const QPointF at = place_of(p);
  const double width = painter.fontMetrics().horizontalAdvance(p.label);
  const double x = std::min(at.x() + 10, plot().right() - width - 2);
  painter.setPen(ink);
  painter.drawText(QPointF(x, std::max(at.y() - 10, plot().top() + 14)), p.label);
}

bool ParetoPlot::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int at = point_at(help->pos());
  if (at >= 0)
    QToolTip::showText(help->globalPos(), points_[static_cast<std::size_t>(at)].hint, this);
  return true;
}

void ParetoPlot::mousePressEvent(QMouseEvent* event) {
  if (const int at = point_at(event->position()); at >= 0) select(at);
}

void ParetoPlot::keyPressEvent(QKeyEvent* event) {
  const int step = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  if (step == 0 || points_.empty()) return QWidget::keyPressEvent(event);
  const auto now = std::find(from_left_.begin(), from_left_.end(), selected_);
  const auto at = now == from_left_.end() ? 0 : now - from_left_.begin() + step;
  const auto last = static_cast<std::ptrdiff_t>(from_left_.size()) - 1;
  select(from_left_[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))]);
}

}  // namespace shardplan::gui
