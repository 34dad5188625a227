#include "views/legend.h"

#include <QEvent>
#include <QPainter>
#include <algorithm>
#include <utility>

namespace shardplan::gui {
namespace {

constexpr int kSquare = 10, kGap = 4, kBetween = 16;

}  // namespace

void paint_swatch(QPainter& painter, const QRect& square, const QBrush& brush,
                  const QPalette& palette) {
  painter.fillRect(square, palette.base());
  painter.fillRect(square, brush);
  painter.setPen(palette.color(QPalette::Mid));
  painter.drawRect(square);
}

Legend::Legend(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void Legend::set_entries(std::vector<LegendEntry> entries) {
  const auto same = [](const LegendEntry& a, const LegendEntry& b) {
    return a.text == b.text && a.brush == b.brush;
  };
  if (std::equal(entries.begin(), entries.end(), entries_.begin(), entries_.end(), same)) return;
  const int before = lines(width());
  entries_ = std::move(entries);
  measure();
  QStringList spoken;
  for (const LegendEntry& entry : entries_) spoken.push_back(entry.text);
  setAccessibleName(spoken.join(QStringLiteral(", ")));
  if (lines(width()) != before) updateGeometry();
  update();
}

int Legend::line_height() const {
  return fontMetrics().height() + 1;
}

/// After the words or the font changed.
void Legend::measure() {
  widths_.clear();
  for (const LegendEntry& entry : entries_)
    widths_.push_back(kSquare + kGap + fontMetrics().horizontalAdvance(entry.text));
}

int Legend::place(int width, std::vector<QPoint>* places) const {
  int x = 0, line = 0;
  for (const int needed : widths_) {
    if (x > 0 && x + needed > width) {
      x = 0;
      ++line;
    }
    if (places != nullptr) places->emplace_back(x, line * line_height());
    x += needed + kBetween;
  }
  return widths_.empty() ? 0 : line + 1;
}

QSize Legend::sizeHint() const {
  constexpr int kReadable = 400;
  return {kReadable, heightForWidth(std::max(kReadable, width()))};
}

QSize Legend::minimumSizeHint() const {
  return {widths_.empty() ? 0 : *std::max_element(widths_.begin(), widths_.end()), line_height()};
}

void Legend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  std::vector<QPoint> places;
  place(width(), &places);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const QRect square(places[i].x(), places[i].y() + (line_height() - kSquare) / 2, kSquare,
                       kSquare);
    const QColor ink = palette().color(foregroundRole());
    if (entries_[i].brush.style() == Qt::NoBrush)
      painter.fillRect(QRect(square.center().x(), square.top() - 1, 2, kSquare + 2), ink);
    else
      paint_swatch(painter, square, entries_[i].brush, palette());
    painter.setPen(ink);
    painter.drawText(QRect(places[i] + QPoint(kSquare + kGap, 0), QSize(width(), line_height())),
                     Qt::AlignLeft | Qt::AlignVCenter, entries_[i].text);
  }
}

void Legend::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::FontChange) return;
  measure();
  updateGeometry();
}

}  // namespace shardplan::gui
