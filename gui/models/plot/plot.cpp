#include "models/plot/plot.h"

#include <QFontMetricsF>
#include <QLineF>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/plot/labels.h"

namespace shardplan::gui {
namespace {

constexpr double kReach = 14;  // pixels from a point that still mean it
constexpr double kRadius = 4.5, kSmallRadius = 2.5, kChosenRadius = 7;
constexpr double kPad = 6;
constexpr double kWidestName = 0.45;  // of the plot
constexpr int kTicksAcross = 7, kTicksUp = 6;

std::vector<double> values_of(const PlotData& data, bool is_x) {
  std::vector<double> values;
  for (const PlotPoint& p : data.points) {
    if (is_x || data.diagonal) values.push_back(p.x);
    if (!is_x || data.diagonal) values.push_back(p.y);
  }
  if (values.empty()) return values;
  for (const PlotLimit& limit : data.limits)
    if (limit.is_x == is_x) values.push_back(limit.at);
  return values;
}

PlotAxis axis_of(const PlotData& data, bool is_x) {
  const PlotDimension& d = is_x ? data.x : data.y;
  return {d.unit, d.scale, values_of(data, is_x)};
}

/// Above a point, moved until all of it is inside: what is chosen has its name, come what may.
QRectF within(const QRectF& area, const LabelWish& wish) {
  const double left = std::clamp(wish.anchor.x() - wish.size.width() / 2, area.left(),
                                 std::max(area.left(), area.right() - wish.size.width()));
  const double above = wish.anchor.y() - wish.size.height() - kChosenRadius;
  return {QPointF(left, above >= area.top() ? above : wish.anchor.y() + kChosenRadius), wish.size};
}

}  // namespace

std::vector<int> front_of(const std::vector<PlotPoint>& points, bool less_x_is_better,
                          bool less_y_is_better) {
  const double right = less_x_is_better ? 1 : -1, up = less_y_is_better ? 1 : -1;
  std::vector<int> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int i) {
    const PlotPoint& p = points[static_cast<std::size_t>(i)];
    return std::pair(right * p.x, up * p.y);
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
  std::vector<int> front;
  for (const int i : order)
    if (front.empty() || key(i).second < key(front.back()).second) front.push_back(i);
  if (!less_x_is_better) std::reverse(front.begin(), front.end());
  return front;
}

PlotLayout::PlotLayout(const PlotData& data, const QSizeF& size, const QFont& font)
    : data_(data), size_(size), font_(font), x_(axis_of(data, true)), y_(axis_of(data, false)) {
  line_height_ = QFontMetricsF(font).height();
  x_ticks_ = x_.ticks(std::clamp(static_cast<int>(size.width() / 80), 2, kTicksAcross));
  y_ticks_ = y_.ticks(std::clamp(static_cast<int>(size.height() / 36), 2, kTicksUp));
  double widest = 0;
  for (const Tick& tick : y_ticks_) widest = std::max(widest, width_of(tick.text));
  const bool has_legend = std::any_of(data.series.begin(), data.series.end(),
                                      [](const PlotSeries& s) { return !s.name.isEmpty(); });
  const double top = has_legend ? line_height_ + kPad : kPad;
  const double left = line_height_ + widest + 2 * kPad;
  const double bottom = 2 * line_height_ + kPad;
  area_ = QRectF(left, top, std::max(10.0, size.width() - left - 2 * kPad),
                 std::max(10.0, size.height() - top - bottom));
}

double PlotLayout::width_of(const QString& text) const {
  return QFontMetricsF(font_).horizontalAdvance(text);
}

double PlotLayout::radius_of(const PlotPoint& point) const {
  const auto s = static_cast<std::size_t>(point.series);
  return s < data_.series.size() && data_.series[s].small ? kSmallRadius : kRadius;
}

QPointF PlotLayout::place_of(double x, double y) const {
  return {area_.left() + area_.width() * x_.place(x),
          area_.bottom() - area_.height() * y_.place(y)};
}

int PlotLayout::point_at(const QPointF& place) const {
  int nearest = -1;
  double least = kReach;
  for (std::size_t i = 0; i < data_.points.size(); ++i) {
    const double distance = QLineF(place_of(data_.points[i].x, data_.points[i].y), place).length();
    if (distance >= least) continue;
    least = distance;
    nearest = static_cast<int>(i);
  }
  return nearest;
}

Drawing PlotLayout::draw(const PlotInks& inks, const PlotFocus& focus) const {
  Drawing out{size_, {}};
  out.shapes.push_back(RectShape{QRectF(QPointF(), size_), inks.window, {}});
  out.shapes.push_back(RectShape{area_, inks.ground, {}});
  if (data_.points.empty()) {
    out.shapes.push_back(TextShape{area_, data_.empty, inks.dim, TextPlace::centre});
    return out;
  }
  draw_axes(out, inks);
  draw_limits(out, inks);
  draw_lines(out, inks);
  draw_points(out, inks, focus);
  draw_names(out, inks, focus);
  draw_legend(out, inks);
  return out;
}

void PlotLayout::draw_axes(Drawing& to, const PlotInks& inks) const {
  const Stroke grid{inks.grid, 1, false};
  double last_end = -1;
  for (const Tick& tick : x_ticks_) {
    const double at = area_.left() + area_.width() * x_.place(tick.value);
    to.shapes.push_back(LineShape{{{at, area_.top()}, {at, area_.bottom()}}, grid});
    const double width = width_of(tick.text);
    const double left = std::clamp(at - width / 2, 0.0, std::max(0.0, size_.width() - width));
    if (left <= last_end + kPad) continue;  // a number over another one is none
    last_end = left + width;
    to.shapes.push_back(TextShape{QRectF(left, area_.bottom() + 2, width, line_height_), tick.text,
                                  inks.ink, TextPlace::centre});
  }
  for (const Tick& tick : y_ticks_) {
    const double at = area_.bottom() - area_.height() * y_.place(tick.value);
    to.shapes.push_back(LineShape{{{area_.left(), at}, {area_.right(), at}}, grid});
    to.shapes.push_back(TextShape{QRectF(line_height_, at - line_height_ / 2,
                                         area_.left() - line_height_ - kPad, line_height_),
                                  tick.text, inks.ink, TextPlace::right});
  }
  to.shapes.push_back(TextShape{
      QRectF(area_.left(), area_.bottom() + line_height_ + 2, area_.width(), line_height_),
      data_.x.title, inks.ink, TextPlace::centre});
  to.shapes.push_back(TextShape{QRectF(0, area_.top(), line_height_, area_.height()), data_.y.title,
                                inks.ink, TextPlace::centre, true});
  to.shapes.push_back(RectShape{area_, {}, {inks.dim, 1, false}});
}

void PlotLayout::draw_limits(Drawing& to, const PlotInks& inks) const {
  if (data_.diagonal)
    to.shapes.push_back(LineShape{
        {place_of(x_.least(), x_.least()), place_of(x_.most(), x_.most())}, {inks.dim, 1, true}});
  for (const PlotLimit& limit : data_.limits) {
    const QPointF at = limit.is_x ? place_of(limit.at, y_.most()) : place_of(x_.least(), limit.at);
    const QPointF end =
        limit.is_x ? QPointF(at.x(), area_.bottom()) : QPointF(area_.right(), at.y());
    to.shapes.push_back(LineShape{{at, end}, {inks.ink, 1.5, true}});
    to.shapes.push_back(
        TextShape{place_of_name(limit), limit.name, inks.dim, TextPlace::left, false});
  }
}

/// Beside its line, at the end that plots of trade-offs leave free, on the side where there is
/// room.
QRectF PlotLayout::place_of_name(const PlotLimit& limit) const {
  const QSizeF size(width_of(limit.name), line_height_);
  const QPointF at = limit.is_x ? place_of(limit.at, y_.least()) : place_of(x_.least(), limit.at);
  if (limit.is_x) {
    const bool left = at.x() - area_.left() > size.width() + 2 * kPad;
    return {
        QPointF(left ? at.x() - size.width() - 4 : at.x() + 4, area_.bottom() - line_height_ - 2),
        size};
  }
  const bool above = at.y() - area_.top() > line_height_ + kPad;
  return {QPointF(at.x() + 4, above ? at.y() - line_height_ - 1 : at.y() + 1), size};
}

void PlotLayout::draw_lines(Drawing& to, const PlotInks& inks) const {
  for (const PlotLine& line : data_.lines) {
    LineShape shape{{}, {line.colour.isValid() ? line.colour : inks.ink, 2, false}};
    for (const int i : line.points) {
      const PlotPoint& p = data_.points[static_cast<std::size_t>(i)];
      const QPointF at = place_of(p.x, p.y);
      if (line.stepped && !shape.points.empty())
        shape.points.emplace_back(at.x(), shape.points.back().y());
      shape.points.push_back(at);
    }
    if (shape.points.size() > 1) to.shapes.push_back(std::move(shape));
  }
}

void PlotLayout::draw_points(Drawing& to, const PlotInks& inks, const PlotFocus& focus) const {
  const auto draw = [&](int i, bool chosen) {
    const PlotPoint& p = data_.points[static_cast<std::size_t>(i)];
    const PlotSeries& s = data_.series.at(static_cast<std::size_t>(p.series));
    to.shapes.push_back(MarkerShape{s.marker,
                                    place_of(p.x, p.y),
                                    chosen ? kChosenRadius : radius_of(p),
                                    i == focus.selected  ? inks.chosen
                                    : s.colour.isValid() ? s.colour
                                                         : inks.plain,
                                    {chosen ? inks.ink : inks.ground, chosen ? 2.0 : 1.0, false}});
  };
  for (int i = 0; i < static_cast<int>(data_.points.size()); ++i)
    if (i != focus.selected && i != focus.hovered) draw(i, false);
  for (const int i : {focus.hovered, focus.selected})
    if (i >= 0) draw(i, true);
}

/// Of what is chosen and pointed at first, then of the others where there is room.
void PlotLayout::draw_names(Drawing& to, const PlotInks& inks, const PlotFocus& focus) const {
  std::vector<int> named;
  const auto add = [&](int i) {
    if (i >= 0 && !data_.points[static_cast<std::size_t>(i)].name.isEmpty() &&
        std::find(named.begin(), named.end(), i) == named.end())
      named.push_back(i);
  };
  add(focus.selected);
  add(focus.hovered);
  if (data_.has_names)
    for (const PlotLine& line : data_.lines)
      for (const int i : line.points) add(i);
  const QFontMetricsF metrics(font_);
  QStringList names;
  std::vector<LabelWish> wishes;
  std::vector<QPointF> points;
  std::vector<QRectF> taken;
  for (const int i : named) {
    const PlotPoint& p = data_.points[static_cast<std::size_t>(i)];
    names.push_back(metrics.elidedText(p.name, Qt::ElideRight, kWidestName * area_.width()));
    wishes.push_back({place_of(p.x, p.y), {width_of(names.back()), line_height_}});
  }
  if (data_.has_names)
    for (const PlotPoint& p : data_.points) points.push_back(place_of(p.x, p.y));
  for (const PlotLimit& limit : data_.limits) taken.push_back(place_of_name(limit));
  // What is chosen has its name wherever there is room for least else; the others keep off it.
  std::vector<std::optional<QRectF>> places;
  if (!named.empty() && named.front() == focus.selected) {
    places = place_labels({wishes.front()}, area_, points, kRadius, taken);
    if (!places.front()) places.front() = within(area_, wishes.front());
    taken.push_back(*places.front());
    wishes.erase(wishes.begin());
  }
  for (std::optional<QRectF>& place : place_labels(wishes, area_, points, kRadius, taken))
    places.push_back(place);
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (!places[i]) continue;
    const bool looked_at = named[i] == focus.selected || named[i] == focus.hovered;
    to.shapes.push_back(RectShape{*places[i], inks.ground, {}});
    to.shapes.push_back(TextShape{*places[i], names[static_cast<qsizetype>(i)],
                                  looked_at ? inks.ink : inks.dim, TextPlace::left, false});
  }
}

void PlotLayout::draw_legend(Drawing& to, const PlotInks& inks) const {
  double x = area_.left();
  const double middle = line_height_ / 2;
  for (const PlotSeries& s : data_.series) {
    if (s.name.isEmpty()) continue;
    const double width = width_of(s.name);
    if (x + 2 * kPad + width > size_.width()) return;
    to.shapes.push_back(MarkerShape{s.marker,
                                    {x + kRadius, middle},
                                    kRadius,
                                    s.colour.isValid() ? s.colour : inks.plain,
                                    {inks.ink, 1, false}});
    to.shapes.push_back(TextShape{QRectF(x + 2 * kRadius + 4, 0, width, line_height_), s.name,
                                  inks.ink, TextPlace::left});
    x += 2 * kRadius + 4 + width + 2 * kPad;
  }
}

}  // namespace shardplan::gui
