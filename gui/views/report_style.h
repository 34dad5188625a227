// The custom properties of the report's style sheet (data/report/style.css): window and report
// share its colours, its sizes of type and its unit of distance.
#pragma once

#include <QColor>
#include <QFont>
#include <QHash>
#include <QString>

namespace shardplan::gui {

class ReportStyle {
 public:
  /// Of the sheet's dark colours, or of the light ones.
  static const ReportStyle& of(bool dark);

  /// Of a name of the sheet, such as "ink". It is an error of the program to ask for another one.
  QColor colour(const char* name) const { return QColor(value(QLatin1String(name))); }
  /// What fills a part of the class c-PART.
  QColor fill(const char* part) const;

 private:
  explicit ReportStyle(bool dark);
  QString value(const QString& name) const;

  QHash<QString, QString> values_;  ///< of custom properties
  QHash<QString, QString> fills_;   ///< by part: the property that fills it
};

/// Sizes of the sheet, by which a font of the system's size is scaled.
enum class TypeSize { text, large, title };
QFont sized(QFont font, TypeSize size);

/// The sheet's unit, in pixels: all distances in a window are multiples of it or of its half.
int space();
inline int half_space() {
  return space() / 2;
}

}  // namespace shardplan::gui
