// A plot of points: what it shows, and how that is laid out on an area.
#pragma once

#include <QCoreApplication>
#include <optional>
#include <vector>

#include "models/plot/axis.h"
#include "models/plot/drawing.h"

namespace shardplan::gui {

struct PlotPoint {
  double x = 0, y = 0;
  QString name;  ///< beside it
  QString hint;  ///< on hover: markup
  int series = 0;
};

struct PlotSeries {
  QString name;  ///< in the legend; "": not there
  QColor colour;
  Marker marker = Marker::circle;
  bool small = false;  ///< of many points, or of a curve
};

/// Points in the order in which a line joins them.
struct PlotLine {
  std::vector<int> points;
  QColor colour;
  bool stepped = false;  ///< level until the next one
};

/// A value that means something: a line across the plot with its name.
struct PlotLimit {
  bool is_x = true;
  double at = 0;
  QString name;
};

struct PlotDimension {
  QString title;
  PlotUnit unit = PlotUnit::number;
  PlotScale scale = PlotScale::automatic;
};

struct PlotData {
  PlotDimension x, y;
  std::vector<PlotPoint> points;
  std::vector<PlotSeries> series;
  std::vector<PlotLine> lines;
  std::vector<PlotLimit> limits;
  bool diagonal = false;   ///< both axes alike, and a line where they are equal
  bool has_names = false;  ///< names beside points where there is room
  QString empty;           ///< said where there are no points
};

/// The points that no other one beats, from left to right.
std::vector<int> front_of(const std::vector<PlotPoint>& points, bool less_x_is_better,
                          bool less_y_is_better);

struct PlotInks {
  QColor window, ground, ink, dim, grid, chosen;
  QColor plain;  ///< of points whose series has no colour
};

/// What is under the pointer and what is chosen; -1: nothing.
struct PlotFocus {
  int selected = -1, hovered = -1;
};

class PlotLayout {
 public:
  PlotLayout(const PlotData& data, const QSizeF& size, const QFont& font);

  QPointF place_of(double x, double y) const;
  /// The point that is meant at a place, or -1.
  int point_at(const QPointF& place) const;
  const QRectF& area() const { return area_; }
  const PlotAxis& x() const { return x_; }
  const PlotAxis& y() const { return y_; }

  Drawing draw(const PlotInks& inks, const PlotFocus& focus) const;

 private:
  void draw_axes(Drawing& to, const PlotInks& inks) const;
  void draw_limits(Drawing& to, const PlotInks& inks) const;
  void draw_lines(Drawing& to, const PlotInks& inks) const;
  void draw_points(Drawing& to, const PlotInks& inks, const PlotFocus& focus) const;
  void draw_names(Drawing& to, const PlotInks& inks, const PlotFocus& focus) const;
  void draw_legend(Drawing& to, const PlotInks& inks) const;
  QRectF place_of_name(const PlotLimit& limit) const;
  double radius_of(const PlotPoint& point) const;
  double width_of(const QString& text) const;

  const PlotData& data_;
  QSizeF size_;
  QFont font_;
  PlotAxis x_, y_;
  QRectF area_;
  double line_height_ = 16;
  std::vector<Tick> x_ticks_, y_ticks_;
};

}  // namespace shardplan::gui
