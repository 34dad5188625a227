#include "views/share_bar.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "views/colours.h"

namespace shardplan::gui {
namespace {

constexpr double kLabelHeight = 16;

}  // namespace

ShareBar::ShareBar(std::function<QBrush(int)> ink, QWidget* parent)
    : QWidget(parent), ink_(std::move(ink)) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void ShareBar::set_shares(std::vector<Share> shares, double limit, double upper,
                          QString limit_text) {
  shares_ = std::move(shares);
  limit_ = limit;
  upper_ = upper;
  limit_text_ = std::move(limit_text);
  total_ = 0;
  QStringList spoken;
  for (const Share& share : shares_) {
    total_ += share.value;
    spoken.push_back(QStringLiteral("%1 %2").arg(share.name, share.amount));
  }
  if (!limit_text_.isEmpty()) spoken.push_back(limit_text_);
  setAccessibleDescription(spoken.join(QStringLiteral(", ")));
  selected_ = std::min(selected_, static_cast<int>(shares_.size()) - 1);
  update();
}

std::vector<LegendEntry> ShareBar::legend(LegendWords words) const {
  std::vector<LegendEntry> entries;
  for (const Share& share : shares_) {
    const bool short_one = words == LegendWords::names;
    entries.push_back(
        {short_one ? share.name : QStringLiteral("%1 %2").arg(share.name, share.amount),
         ink_(share.colour)});
  }
  if (upper_ > total_)
    entries.push_back({tr("up to the upper bound"), upper_bound_brush(palette())});
  return entries;
}

void ShareBar::set_hints(std::function<QString(std::size_t)> hint_of) {
  hint_of_ = std::move(hint_of);
}

QString ShareBar::hint_of(std::size_t share) const {
  const QString& own = shares_[share].hint;
  return own.isEmpty() && hint_of_ ? hint_of_(share) : own;
}

void ShareBar::set_longest(double longest) {
  longest_ = longest;
  update();
}

double ShareBar::scale() const {
  return std::max({total_, limit_, upper_, longest_, 1e-30}) * (limit_ > 0 ? 1.03 : 1.0);
}

QRectF ShareBar::bar_area() const {
  const double top = limit_text_.isEmpty() ? 2 : kLabelHeight;
  return QRectF(1, top, width() - 2, height() - top - 2);
}

QRectF ShareBar::area_of(std::size_t share) const {
  const QRectF area = bar_area();
  double before = 0;
  for (std::size_t i = 0; i < share; ++i) before += shares_[i].value;
  const double unit = area.width() / scale();
  return QRectF(area.left() + before * unit, area.top(), shares_[share].value * unit,
                area.height());
}

int ShareBar::share_at(const QPointF& position) const {
  for (std::size_t i = 0; i < shares_.size(); ++i)
    if (area_of(i).contains(position)) return static_cast<int>(i);
  return -1;
}

bool ShareBar::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int at = share_at(help->pos());
  if (at < 0) {
    QToolTip::hideText();
    event->ignore();
  } else {
    QToolTip::showText(help->globalPos(), hint_of(static_cast<std::size_t>(at)), this);
  }
  return true;
}

void ShareBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF area = bar_area();
  const double unit = area.width() / scale();
  painter.fillRect(area, palette().base());
  if (upper_ > total_) {  // the band between the point estimate and the upper bound
    const QRectF band(area.left() + total_ * unit, area.top(), (upper_ - total_) * unit,
                      area.height());
    painter.fillRect(band, upper_bound_brush(palette()));
  }
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const QRectF part = area_of(i);
    painter.fillRect(part, palette().base());
    painter.fillRect(part, ink_(shares_[i].colour));
    painter.setPen(QPen(palette().color(QPalette::Base), 0.7));
    painter.drawLine(part.topRight(), part.bottomRight());
    paint_label(painter, shares_[i], area_of_words(part));
    if (static_cast<int>(i) == selected_) {
      painter.setPen(QPen(palette().color(QPalette::WindowText), 2));
      painter.drawRect(part.adjusted(1, 1, -1, -1));
    }
  }
  painter.setPen(QPen(palette().color(hasFocus() ? QPalette::Highlight : QPalette::Mid), 1));
  painter.setRenderHint(QPainter::Antialiasing, false);  // a frame of whole pixels
  painter.drawRect(area.toRect());
  painter.setRenderHint(QPainter::Antialiasing);
  if (limit_ > 0) {
    const double x = x_of_limit();
    painter.setPen(QPen(palette().color(QPalette::WindowText), 2));
    painter.drawLine(QPointF(x, area.top() - 3), QPointF(x, area.bottom() + 2));
    const double words = painter.fontMetrics().horizontalAdvance(limit_text_);
    const double right = std::min<double>(std::max(x + 40, words), width());
    painter.drawText(QRectF(0, 0, right, kLabelHeight - 2), Qt::AlignRight | Qt::AlignVCenter,
                     limit_text_);
  }
}

/// Beside the line of capacity where that crosses the part, on the wider side.
QRectF ShareBar::area_of_words(const QRectF& part) const {
  const double x = x_of_limit();
  if (limit_ <= 0 || x <= part.left() || x >= part.right()) return part;
  QRectF side = part;
  if (x - part.left() > part.right() - x)
    side.setRight(x);
  else
    side.setLeft(x);
  return side;
}

double ShareBar::x_of_limit() const {
  return bar_area().left() + limit_ * bar_area().width() / scale();
}

void ShareBar::paint_label(QPainter& painter, const Share& share, const QRectF& part) const {
  const QFontMetrics metrics = painter.fontMetrics();
  const double room = part.width() - 6;
  if (metrics.horizontalAdvance(share.amount) > room) return;
  const QBrush ink = ink_(share.colour);
  const bool hatched = ink.style() != Qt::SolidPattern;
  const QColor ground = hatched ? palette().color(QPalette::Base) : ink.color();
  painter.setPen(ink_on(ground));
  const bool has_name =
      metrics.horizontalAdvance(share.name) <= room && 2 * metrics.height() <= part.height();
  const QString label = has_name ? share.name + QLatin1Char('\n') + share.amount : share.amount;
  if (hatched) {  // words on a hatched ground need a plain one
    const QRectF words = painter.boundingRect(part, Qt::AlignCenter, label).adjusted(-2, 0, 2, 0);
    painter.fillRect(words, palette().base());
  }
  painter.drawText(part, Qt::AlignCenter, label);
}

void ShareBar::keyPressEvent(QKeyEvent* event) {
  const int last = static_cast<int>(shares_.size()) - 1;
  if (event->key() == Qt::Key_Right && last >= 0) {
    select(std::min(selected_ + 1, last));
  } else if (event->key() == Qt::Key_Left && last >= 0) {
    select(std::max(selected_ - 1, 0));
  } else {
    QWidget::keyPressEvent(event);
  }
}

void ShareBar::focusOutEvent(QFocusEvent* event) {
  selected_ = -1;
  QWidget::focusOutEvent(event);
}

void ShareBar::select(int share) {
  selected_ = share;
  const auto at = static_cast<std::size_t>(share);
  QToolTip::showText(mapToGlobal(area_of(at).center().toPoint()), hint_of(at), this);
  update();
}

}  // namespace shardplan::gui
