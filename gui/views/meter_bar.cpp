#include "views/meter_bar.h"

#include <QPainter>
#include <algorithm>

namespace shardplan::gui {

MeterBar::MeterBar(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void MeterBar::set_amounts(double needed, double upper, double available) {
  if (needed == needed_ && upper == upper_ && available == available_) return;
  needed_ = needed;
  upper_ = upper;
  available_ = available;
  update();
}

void MeterBar::paintEvent(QPaintEvent*) {
  const double longest = std::max({needed_, upper_, available_});
  if (longest <= 0) return;
  QPainter painter(this);
  const QRectF area = QRectF(rect()).adjusted(0.5, 1.5, -1.5, -1.5);
  const double unit = area.width() / (longest * 1.02);  // the mark at the end is inside
  const auto part = [&](double from, double to) {
    return QRectF(area.left() + from * unit, area.top(), (to - from) * unit, area.height());
  };
  painter.fillRect(area, palette().base());
  painter.fillRect(part(0, needed_), palette().color(QPalette::Highlight));
  if (upper_ > needed_)
    painter.fillRect(part(needed_, upper_),
                     QBrush(palette().color(QPalette::PlaceholderText), Qt::Dense5Pattern));
  painter.setPen(palette().color(QPalette::Mid));
  painter.drawRect(area);
  if (available_ <= 0) return;
  painter.setPen(QPen(palette().color(QPalette::WindowText), 2));
  const double x = area.left() + available_ * unit;
  painter.drawLine(QPointF(x, 0), QPointF(x, height()));
}

}  // namespace shardplan::gui
