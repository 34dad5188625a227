#include "views/plot_view.h"

#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <QSaveFile>
#include <QToolTip>
#include <algorithm>
#include <numeric>

#include "views/colours.h"
#include "views/file_dialogs.h"
#include "views/widgets.h"

namespace shardplan::gui {
namespace {

QPen pen_of(const Stroke& stroke) {
  if (!stroke.colour.isValid()) return Qt::NoPen;
  return QPen(stroke.colour, stroke.width, stroke.dashed ? Qt::DashLine : Qt::SolidLine);
}

QBrush brush_of(const QColor& fill) {
  return fill.isValid() ? QBrush(fill) : QBrush(Qt::NoBrush);
}

QPolygonF polygon_of(const std::vector<QPointF>& points) {
  return QPolygonF(QList<QPointF>(points.begin(), points.end()));
}

void paint_shape(QPainter& painter, const RectShape& r) {
  painter.setPen(pen_of(r.stroke));
  painter.setBrush(brush_of(r.fill));
  painter.drawRect(r.area);
}

void paint_shape(QPainter& painter, const LineShape& l) {
  painter.setPen(pen_of(l.stroke));
  painter.drawPolyline(polygon_of(l.points));
}

void paint_shape(QPainter& painter, const MarkerShape& m) {
  painter.setPen(pen_of(m.stroke));
  painter.setBrush(brush_of(m.fill));
  if (m.marker == Marker::circle)
    painter.drawEllipse(m.centre, m.radius, m.radius);
  else
    painter.drawPolygon(polygon_of(corners_of(m)));
}

void paint_shape(QPainter& painter, const TextShape& t) {
  painter.setPen(t.colour);
  const Qt::Alignment along = t.place == TextPlace::left     ? Qt::AlignLeft
                              : t.place == TextPlace::centre ? Qt::AlignHCenter
                                                             : Qt::AlignRight;
  const int flags = static_cast<int>(along | Qt::AlignVCenter) | Qt::TextDontClip;
  if (!t.upwards) return painter.drawText(t.area, flags, t.text);
  painter.save();
  painter.translate(t.area.center());
  painter.rotate(-90);
  painter.drawText(
      QRectF(-t.area.height() / 2, -t.area.width() / 2, t.area.height(), t.area.width()), flags,
      t.text);
  painter.restore();
}

}  // namespace

void paint(QPainter& painter, const Drawing& drawing) {
  painter.setRenderHint(QPainter::Antialiasing);
  for (const Shape& shape : drawing.shapes)
    std::visit([&](const auto& s) { paint_shape(painter, s); }, shape);
}

PlotView::PlotView(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
}

PlotInks PlotView::inks() const {
  const QPalette p = palette();
  return {p.color(QPalette::Window),
          p.color(QPalette::Base),
          p.color(QPalette::WindowText),
          p.color(QPalette::PlaceholderText),
          grid_colour(p),
          chosen_colour(),
          series_colour(0)};
}

void PlotView::set_data(PlotData data) {
  data_ = std::move(data);
  focus_ = {};
  from_left_.resize(data_.points.size());
  std::iota(from_left_.begin(), from_left_.end(), 0);
  std::stable_sort(from_left_.begin(), from_left_.end(), [this](int a, int b) {
    return data_.points[static_cast<std::size_t>(a)].x <
           data_.points[static_cast<std::size_t>(b)].x;
  });
  setAccessibleDescription(
      tr("%1 points: %2 across, %3 up").arg(data_.points.size()).arg(data_.x.title, data_.y.title));
  update();
}

void PlotView::select(int point) {
  if (point == focus_.selected || point >= static_cast<int>(data_.points.size())) return;
  focus_.selected = point;
  if (point >= 0)
    setAccessibleDescription(spoken(data_.points[static_cast<std::size_t>(point)].hint));
  update();
  Q_EMIT selection_changed(point);
}

void PlotView::hover(int point) {
  if (point == focus_.hovered) return;
  focus_.hovered = point;
  setCursor(point >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  update();
}

bool PlotView::save(const QString& path) const {
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly)) return false;
  const Drawing drawing = laid_out().draw(inks(), focus_);
  if (path.endsWith(QStringLiteral(".svg"), Qt::CaseInsensitive)) {
    file.write(svg_of(drawing, font(), accessibleName()));
    return file.commit();
  }
  constexpr double kScale = 2;  // for print and displays of high density
  QImage image((QSizeF(size()) * kScale).toSize(), QImage::Format_RGB32);
  image.setDevicePixelRatio(kScale);
  {
    QPainter painter(&image);
    painter.setFont(font());
    paint(painter, drawing);
  }
  return image.save(&file, "PNG") && file.commit();
}

void PlotView::ask_and_save() {
  const QString path = FileDialogs::where_to_save(
      window(), tr("Save the plot"), QStringLiteral("plot.svg"),
      {{tr("Drawings"), QStringLiteral("svg")}, {tr("Pictures"), QStringLiteral("png")}});
  if (path.isEmpty()) return;
  if (save(path))
    Q_EMIT saved(path);
  else
    Q_EMIT not_saved(path);
}

void PlotView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setFont(font());
  const PlotLayout plot = laid_out();
  paint(painter, plot.draw(inks(), focus_));
  if (!hasFocus()) return;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
  painter.drawRect(plot.area());
}

bool PlotView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int at = laid_out().point_at(help->pos());
  if (at >= 0)
    QToolTip::showText(help->globalPos(), data_.points[static_cast<std::size_t>(at)].hint, this);
  else
    QToolTip::hideText();
  return true;
}

void PlotView::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return QWidget::mousePressEvent(event);
  if (const int at = laid_out().point_at(event->position()); at >= 0) select(at);
}

void PlotView::mouseMoveEvent(QMouseEvent* event) {
  hover(laid_out().point_at(event->position()));
}

void PlotView::leaveEvent(QEvent*) {
  hover(-1);
}

void PlotView::keyPressEvent(QKeyEvent* event) {
  const int step = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
  if (step == 0 || data_.points.empty()) return QWidget::keyPressEvent(event);
  const auto now = std::find(from_left_.begin(), from_left_.end(), focus_.selected);
  const auto at = now == from_left_.end() ? 0 : now - from_left_.begin() + step;
  const auto last = static_cast<std::ptrdiff_t>(from_left_.size()) - 1;
  select(from_left_[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, last))]);
}

void PlotView::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  menu.addAction(tr("&Save this plot…"), this, &PlotView::ask_and_save)
      ->setEnabled(!data_.points.empty());
  menu.exec(event->globalPos());
}

}  // namespace shardplan::gui
