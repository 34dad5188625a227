#include "views/text_label.h"

#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QMenu>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "models/line_breaks.h"

namespace shardplan::gui {
namespace {

constexpr int kNarrowest = 80;  ///< a wrapped text goes no narrower
constexpr int kReadable = 360;  ///< and asks for no more than this of its own

int up(double length) {
  return static_cast<int>(std::ceil(length));
}

}  // namespace

TextLabel::TextLabel(Lines lines, QWidget* parent) : QWidget(parent), lines_(lines) {
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  policy.setHeightForWidth(lines == Lines::wrapped);
  setSizePolicy(policy);
  layout_.setCacheEnabled(true);
}

void TextLabel::set_text(const QString& text, const QList<QTextLayout::FormatRange>& formats) {
  if (text == text_ && formats == layout_.formats()) return;
  const int before = lines_ == Lines::wrapped ? heightForWidth(width()) : widest_;
  text_ = text;
  setAccessibleName(text);
  layout_.setText(with_line_breaks(text));
  layout_.setFormats(formats);
  shape();
  if ((lines_ == Lines::wrapped ? heightForWidth(width()) : widest_) != before) updateGeometry();
  update();
}

void TextLabel::set_alignment(Qt::Alignment alignment) {
  alignment_ = alignment;
  shape();
}

/// After the text, its font or the widget's width changed.
void TextLabel::shape() {
  heights_.clear();
  layout_.setFont(font());
  QTextOption option(alignment_);
  option.setWrapMode(lines_ == Lines::one ? QTextOption::NoWrap : QTextOption::WordWrap);
  layout_.setTextOption(option);
  break_lines(width());
  natural_width_ = up(lines_ == Lines::wrapped  ? layout_.maximumWidth()
                      : layout_.lineCount() > 0 ? layout_.lineAt(0).naturalTextWidth()
                                                : 0);
  widest_ = std::max(widest_, natural_width_);
  if (lines_ == Lines::wrapped) heights_.emplace_back(width(), up(layout_.boundingRect().height()));
}

void TextLabel::break_lines(int width) const {
  layout_.beginLayout();
  double y = 0;
  for (QTextLine line = layout_.createLine(); line.isValid(); line = layout_.createLine()) {
    line.setLineWidth(width);
    line.setPosition(QPointF(0, y));
    y += line.height();
  }
  layout_.endLayout();
}

bool TextLabel::is_cut() const {
  return lines_ == Lines::one ? natural_width_ > width() : heightForWidth(width()) > height();
}

int TextLabel::heightForWidth(int width) const {
  if (lines_ == Lines::one) return -1;
  for (const auto& [known, height] : heights_)
    if (known == width) return height;
  break_lines(width);  // what was shaped stays, so that this costs little
  heights_.emplace_back(width, up(layout_.boundingRect().height()));
  break_lines(this->width());
  return heights_.back().second;
}

QSize TextLabel::sizeHint() const {
  if (lines_ == Lines::one) return {widest_, fontMetrics().height()};
  const int width = std::clamp(natural_width_, kNarrowest, kReadable);
  return {width, heightForWidth(width)};
}

QSize TextLabel::minimumSizeHint() const {
  return lines_ == Lines::one ? sizeHint() : QSize(kNarrowest, fontMetrics().height());
}

void TextLabel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setPen(palette().color(foregroundRole()));
  const double spare = height() - layout_.boundingRect().height();
  layout_.draw(&painter, QPointF(0, lines_ == Lines::one ? std::max(0.0, spare / 2) : 0.0));
}

void TextLabel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  break_lines(width());
}

void TextLabel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::FontChange) return;
  shape();
  updateGeometry();
}

void TextLabel::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  menu.addAction(tr("&Copy"), this, [this] { QApplication::clipboard()->setText(text_); });
  menu.exec(event->globalPos());
}

}  // namespace shardplan::gui
