#include "views/timeline_view.h"

#include <QHelpEvent>
#include <QImage>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <array>
#include <cmath>

#include "models/core_words.h"
#include "models/text.h"
#include "render/describe.h"
#include "report/words.h"
#include "views/colours.h"

namespace shardplan::gui {
namespace {

constexpr double kTop = 18, kBottom = 18;

}  // namespace

TimelineView::TimelineView(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void TimelineView::set_timeline(std::shared_ptr<const MemoryTimeline> timeline, double room) {
  timeline_ = std::move(timeline);
  room_ = room;
  cursor_.reset();
  lay_out();
  setAccessibleDescription(is_empty() ? QString() : description_of(timeline_->peak));
  update();
}

QString TimelineView::description_of(std::size_t point) const {
  const TimelinePoint& p = points()[point];
  QString where = words(report::words_of(p.phase));
  if (p.iterations > 1) where += tr(", repetition %1 of %2").arg(p.iteration + 1).arg(p.iterations);
  if (timeline_->micro_batches > 1)
    where += tr(", micro-batch %1 of %2").arg(p.micro_batch + 1).arg(timeline_->micro_batches);
  QString out = QStringLiteral("<b>%1</b>: %2%3")
                    .arg(bytes_text(p.total), where,
                         point == timeline_->peak ? tr(" (the peak)") : QString());
  std::array<std::size_t, kCategoryCount> order{};
  for (std::size_t c = 0; c < kCategoryCount; ++c) order[c] = c;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p.live[a] > p.live[b]; });
  for (const std::size_t c : order)
    if (p.live[c] > 0)
      out += QStringLiteral("<br>%1 %2")
                 .arg(bytes_text(p.live[c]), words(report::words_of(static_cast<Category>(c), {})));
  return out;
}

QRectF TimelineView::plot() const {
  return QRectF(1, kTop, width() - 2, std::max(10.0, height() - kTop - kBottom));
}

double TimelineView::highest() const {
  return std::max(static_cast<double>(points()[timeline_->peak].total), room_) * 1.04 + 1;
}

/// Widths follow the number of points, but a phase of a few large allocations stays readable.
void TimelineView::lay_out() {
  stretches_.clear();
  if (is_empty()) return;
  const std::vector<TimelinePoint>& points = timeline_->points;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin;
    while (end < points.size() && points[end].phase == points[begin].phase &&
           points[end].micro_batch == points[begin].micro_batch)
      ++end;
    stretches_.push_back({begin, end});
    begin = end;
  }
  const double least = 0.5 / static_cast<double>(std::max<std::size_t>(stretches_.size(), 1));
  double total = 0;
  for (Stretch& s : stretches_) {
    s.left = total;
    total +=
        std::max(least, static_cast<double>(s.end - s.begin) / static_cast<double>(points.size()));
    s.right = total;
  }
  for (Stretch& s : stretches_) {
    s.left /= total;
    s.right /= total;
  }
}

double TimelineView::x_of(std::size_t point) const {
  for (const Stretch& s : stretches_) {
    if (point >= s.end) continue;
    const auto steps = static_cast<double>(std::max<std::size_t>(s.end - s.begin - 1, 1));
    const double within = static_cast<double>(point - s.begin) / steps;
    return plot().left() + plot().width() * (s.left + (s.right - s.left) * within);
  }
  return plot().right();
}

double TimelineView::y_of(double value) const {
  return plot().bottom() - plot().height() * value / highest();
}

std::size_t TimelineView::point_at(double x) const {
  const double share = std::clamp((x - plot().left()) / plot().width(), 0.0, 1.0);
  for (const Stretch& s : stretches_) {
    if (share > s.right) continue;
    const double within = (share - s.left) / (s.right - s.left);
    return s.begin +
           static_cast<std::size_t>(std::lround(within * static_cast<double>(s.end - s.begin - 1)));
  }
  return points().size() - 1;
}

/// One column a pixel, drawn as its highest point.
std::vector<std::size_t> TimelineView::columns() const {
  std::vector<std::size_t> shown(static_cast<std::size_t>(plot().width()) + 1);
  for (std::size_t c = 0; c < shown.size(); ++c) {
    const double x = plot().left() + static_cast<double>(c);
    const std::size_t begin = point_at(x);
    const std::size_t end = std::max(point_at(x + 1), begin + 1);
    shown[c] = begin;
    for (std::size_t i = begin; i < end; ++i)
      if (points()[i].total > points()[shown[c]].total) shown[c] = i;
  }
  return shown;
}

/// Column by column into an image: a painter's polygons or rectangles of a pixel each take longer
/// than all else on the page. A hatched colour leaves every fourth pixel of a row to the ground.
void TimelineView::paint_areas(QPainter& painter) const {
  const std::vector<std::size_t> shown = columns();
  const QRect area = plot().toRect();
  const int rows = qRound(area.height() * devicePixelRatioF());
  QImage image(static_cast<int>(shown.size()), rows, QImage::Format_RGB32);
  image.fill(palette().color(QPalette::Base));
  std::array<QRgb, kCategoryCount> colours{};
  std::array<bool, kCategoryCount> hatched{};
  for (std::size_t c = 0; c < kCategoryCount; ++c) {
    const QBrush brush = category_brush(static_cast<int>(c));
    colours[c] = brush.color().rgb();
    hatched[c] = brush.style() != Qt::SolidPattern;
  }
  auto* const pixels = reinterpret_cast<QRgb*>(image.bits());
  const auto stride = image.bytesPerLine() / static_cast<qsizetype>(sizeof(QRgb));
  const double unit = rows / highest();
  for (std::size_t x = 0; x < shown.size(); ++x) {
    double below = 0;
    int bottom = rows;
    for (std::size_t c = 0; c < kCategoryCount; ++c) {
      below += static_cast<double>(points()[shown[x]].live[c]);
      const int top = std::clamp(rows - qRound(below * unit), 0, bottom);
      for (int y = top; y < bottom; ++y)
        if (!hatched[c] || (static_cast<int>(x) + 2 * y) % 4 != 0)
          pixels[y * stride + static_cast<qsizetype>(x)] = colours[c];
      bottom = top;
    }
  }
  painter.drawImage(QRect(area.left(), area.top(), image.width(), area.height()), image);
}

void TimelineView::paint_phases(QPainter& painter) const {
  const QRectF area = plot();
  for (const Stretch& s : stretches_) {
    const double left = area.left() + area.width() * s.left;
    const double right = area.left() + area.width() * s.right;
    painter.setPen(QPen(palette().color(QPalette::Mid), 1, Qt::DotLine));
    painter.drawLine(QPointF(right, area.top()), QPointF(right, area.bottom()));
    painter.setPen(palette().color(QPalette::WindowText));
    const QRectF label(left + 2, area.bottom() + 1, right - left - 4, kBottom - 2);
    const QString phase = words(report::words_of(points()[s.begin].phase));
    if (painter.fontMetrics().horizontalAdvance(phase) <= label.width())
      painter.drawText(label, Qt::AlignCenter, phase);
  }
}

void TimelineView::paint_marks(QPainter& painter) const {
  const QRectF area = plot();
  const QColor ink = palette().color(QPalette::WindowText);
  if (room_ > 0) {  // seen on any colour: dashes of ink over a line of the ground
    const QLineF line(QPointF(area.left(), y_of(room_)), QPointF(area.right(), y_of(room_)));
    painter.setPen(QPen(palette().color(QPalette::Base), 2.5));
    painter.drawLine(line);
    painter.setPen(QPen(ink, 1.5, Qt::DashLine));
    painter.drawLine(line);
  }
  const TimelinePoint& peak = points()[timeline_->peak];
  const QPointF at(x_of(timeline_->peak), y_of(static_cast<double>(peak.total)));
  painter.setPen(QPen(ink, 1.5));
  painter.setBrush(palette().color(QPalette::Base));
  painter.drawEllipse(at, 3.5, 3.5);
  const QString label = tr("peak %1").arg(bytes_text(peak.total));
  const double width = painter.fontMetrics().horizontalAdvance(label);
  const double x = std::clamp(at.x() - width / 2, area.left(), area.right() - width);
  painter.drawText(QPointF(x, kTop - 5), label);
  if (!cursor_) return;
  painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
  const double cursor = x_of(*cursor_);
  painter.drawLine(QPointF(cursor, area.top()), QPointF(cursor, area.bottom()));
}

void TimelineView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(plot(), palette().base());
  if (is_empty()) return;
  paint_areas(painter);
  paint_phases(painter);
  paint_marks(painter);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(palette().color(hasFocus() ? QPalette::Highlight : QPalette::Mid));
  painter.setRenderHint(QPainter::Antialiasing, false);  // a frame of whole pixels
  painter.drawRect(plot().toRect());
}

bool TimelineView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && !is_empty()) {
    const auto* help = static_cast<QHelpEvent*>(event);
    QToolTip::showText(help->globalPos(), description_of(point_at(help->pos().x())), this);
    return true;
  }
  return QWidget::event(event);
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  if (is_empty()) return;
  cursor_ = point_at(event->position().x());
  update();
}

void TimelineView::leaveEvent(QEvent*) {
  cursor_.reset();
  update();
}

void TimelineView::move_cursor(std::size_t point) {
  cursor_ = point;
  const QString description = description_of(point);
  setAccessibleDescription(description);
  QToolTip::showText(mapToGlobal(QPoint(static_cast<int>(x_of(point)), height() / 2)), description,
                     this);
  update();
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  if (is_empty()) return QWidget::keyPressEvent(event);
  const std::size_t last = points().size() - 1;
  const std::size_t now = cursor_.value_or(timeline_->peak);
  const std::size_t step = std::max<std::size_t>(points().size() / 100, 1);
  switch (event->key()) {
    case Qt::Key_Left:
      return move_cursor(now > step ? now - step : 0);
    case Qt::Key_Right:
      return move_cursor(std::min(now + step, last));
    case Qt::Key_Home:
      return move_cursor(0);
    case Qt::Key_End:
      return move_cursor(last);
    case Qt::Key_P:
      return move_cursor(timeline_->peak);
    default:
      QWidget::keyPressEvent(event);
  }
}

}  // namespace shardplan::gui
