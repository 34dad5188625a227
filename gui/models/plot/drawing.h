// A picture as a list of shapes, from below upwards: what a window paints and what an SVG file has.
#pragma once

#include <QByteArray>
#include <QColor>
#include <QFont>
#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QString>
#include <cstdint>
#include <variant>
#include <vector>

namespace shardplan::gui {

struct Stroke {
  QColor colour;
  double width = 1;
  bool dashed = false;
};

struct RectShape {
  QRectF area;
  QColor fill;    ///< invalid: none
  Stroke stroke;  ///< an invalid colour: none
};

/// A line through points.
struct LineShape {
  std::vector<QPointF> points;
  Stroke stroke;
};

enum class Marker : std::uint8_t { circle, square, triangle, diamond };

/// The sign of a value, `radius` pixels to its edge.
struct MarkerShape {
  Marker marker = Marker::circle;
  QPointF centre;
  double radius = 4;
  QColor fill;
  Stroke stroke;
};

enum class TextPlace : std::uint8_t { left, centre, right };  ///< where in its area

struct TextShape {
  QRectF area;  ///< the text stands in the middle of its height
  QString text;
  QColor colour;
  TextPlace place = TextPlace::left;
  bool upwards = false;  ///< turned by 90° to the left; `area` is as it is seen
  bool bold = false;
};

using Shape = std::variant<RectShape, LineShape, MarkerShape, TextShape>;

struct Drawing {
  QSizeF size;
  std::vector<Shape> shapes;
};

/// The corners of a marker; none of a circle.
std::vector<QPointF> corners_of(const MarkerShape& marker);

/// A whole SVG document. `title`: what it is called to readers that do not see it.
QByteArray svg_of(const Drawing& drawing, const QFont& font, const QString& title);

}  // namespace shardplan::gui
