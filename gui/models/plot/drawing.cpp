#include "models/plot/drawing.h"

#include <QStringList>
#include <utility>

namespace shardplan::gui {
namespace {

QString number(double value) {
  return QString::number(value, 'f', 1);
}

QString paint_of(const QColor& fill) {
  return fill.isValid() ? fill.name() : QStringLiteral("none");
}

QString stroke_of(const Stroke& stroke) {
  if (!stroke.colour.isValid()) return QStringLiteral("stroke=\"none\"");
  return QStringLiteral("stroke=\"%1\" stroke-width=\"%2\"%3")
      .arg(stroke.colour.name(), number(stroke.width),
           stroke.dashed ? QStringLiteral(" stroke-dasharray=\"5 4\"") : QString());
}

QString list_of(const std::vector<QPointF>& points) {
  QStringList out;
  for (const QPointF& p : points)
    out.push_back(QStringLiteral("%1,%2").arg(number(p.x()), number(p.y())));
  return out.join(QLatin1Char(' '));
}

QString element(const RectShape& r) {
  return QStringLiteral("<rect x=\"%1\" y=\"%2\" width=\"%3\" height=\"%4\" fill=\"%5\" %6/>")
      .arg(number(r.area.x()), number(r.area.y()), number(r.area.width()), number(r.area.height()),
           paint_of(r.fill), stroke_of(r.stroke));
}

QString element(const LineShape& l) {
  return QStringLiteral("<polyline points=\"%1\" fill=\"none\" %2/>")
      .arg(list_of(l.points), stroke_of(l.stroke));
}

QString element(const MarkerShape& m) {
  if (m.marker == Marker::circle)
    return QStringLiteral("<circle cx=\"%1\" cy=\"%2\" r=\"%3\" fill=\"%4\" %5/>")
        .arg(number(m.centre.x()), number(m.centre.y()), number(m.radius), paint_of(m.fill),
             stroke_of(m.stroke));
  return QStringLiteral("<polygon points=\"%1\" fill=\"%2\" %3/>")
      .arg(list_of(corners_of(m)), paint_of(m.fill), stroke_of(m.stroke));
}

QString element(const TextShape& t) {
  const double along = t.place == TextPlace::left     ? t.area.left()
                       : t.place == TextPlace::centre ? t.area.center().x()
                                                      : t.area.right();
  const QString anchor = t.place == TextPlace::left     ? QStringLiteral("start")
                         : t.place == TextPlace::centre ? QStringLiteral("middle")
                                                        : QStringLiteral("end");
  const QPointF at = t.upwards ? t.area.center() : QPointF(along, t.area.center().y());
  return QStringLiteral(
             "<text x=\"%1\" y=\"%2\" dy=\"0.35em\" fill=\"%3\" text-anchor=\"%4\"%5%6>%7</text>")
      .arg(number(at.x()), number(at.y()), t.colour.name(),
           t.upwards ? QStringLiteral("middle") : anchor,
           t.upwards ? QStringLiteral(" transform=\"rotate(-90 %1 %2)\"")
                           .arg(number(at.x()), number(at.y()))
                     : QString(),
           t.bold ? QStringLiteral(" font-weight=\"bold\"") : QString(), t.text.toHtmlEscaped());
}

}  // namespace

std::vector<QPointF> corners_of(const MarkerShape& m) {
  const double r = m.radius;
  const auto at = [&](double x, double y) { return m.centre + QPointF(x * r, y * r); };
  switch (m.marker) {
    case Marker::circle:
      break;
    case Marker::square:
      return {at(-0.9, -0.9), at(0.9, -0.9), at(0.9, 0.9), at(-0.9, 0.9)};
    case Marker::triangle:
      return {at(0, -1.15), at(1.1, 0.85), at(-1.1, 0.85)};
    case Marker::diamond:
      return {at(0, -1.25), at(1.25, 0), at(0, 1.25), at(-1.25, 0)};
  }
  return {};
}

QByteArray svg_of(const Drawing& drawing, const QFont& font, const QString& title) {
  QString out =
      QStringLiteral(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%1\" height=\"%2\" "
          "viewBox=\"0 0 %1 %2\" role=\"img\" font-family=\"%3, sans-serif\" font-size=\"%4\">\n"
          "<title>%5</title>\n")
          .arg(number(drawing.size.width()), number(drawing.size.height()),
               font.family().toHtmlEscaped(), number(font.pointSizeF() * 96 / 72),
               title.toHtmlEscaped());
  for (const Shape& shape : drawing.shapes)
    out += std::visit([](const auto& s) { return element(s); }, shape) + QLatin1Char('\n');
  return (out + QStringLiteral("</svg>\n")).toUtf8();
}

}  // namespace shardplan::gui
