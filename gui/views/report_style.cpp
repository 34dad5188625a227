#include "views/report_style.h"

#include <QRegularExpression>

#include "embedded/files.h"
#include "models/text.h"

namespace shardplan::gui {
namespace {

const QString& sheet() {
  static const QString css = text(embedded_file("report/style.css"));
  return css;
}

/// Of the first :root block from `begin` on.
void read_block(qsizetype begin, QHash<QString, QString>& values) {
  static const QRegularExpression kProperty(QStringLiteral("--(\\w+): ([^;]+);"));
  const qsizetype open = sheet().indexOf(QLatin1String(":root"), begin);
  const qsizetype close = sheet().indexOf(QLatin1Char('}'), open);
  auto found = kProperty.globalMatch(sheet().mid(open, close - open));
  while (found.hasNext()) {
    const QRegularExpressionMatch match = found.next();
    values[match.captured(1)] = match.captured(2);
  }
}

double pixels(const char* name) {
  QHash<QString, QString> values;
  read_block(0, values);
  QString size = values.value(QLatin1String(name));
  Q_ASSERT(size.endsWith(QLatin1String("px")));
  size.chop(2);
  return size.toDouble();
}

}  // namespace

ReportStyle::ReportStyle(bool dark) {
  read_block(0, values_);
  if (dark) read_block(sheet().indexOf(QLatin1String("(prefers-color-scheme: dark)")), values_);
  static const QRegularExpression kFill(
      QStringLiteral("\\.c-(\\w+) \\{ --fill: var\\(--(\\w+)\\); \\}"));
  auto found = kFill.globalMatch(sheet());
  while (found.hasNext()) {
    const QRegularExpressionMatch match = found.next();
    fills_[match.captured(1)] = match.captured(2);
  }
}

const ReportStyle& ReportStyle::of(bool dark) {
  static const ReportStyle kLight(false), kDark(true);
  return dark ? kDark : kLight;
}

QString ReportStyle::value(const QString& name) const {
  Q_ASSERT(values_.contains(name));
  return values_.value(name);
}

QColor ReportStyle::fill(const char* part) const {
  Q_ASSERT(fills_.contains(QLatin1String(part)));
  return QColor(value(fills_.value(QLatin1String(part))));
}

QFont sized(QFont font, TypeSize size) {
  static const double kText = pixels("text"), kLarge = pixels("large"), kTitle = pixels("title");
  const double of_sheet = size == TypeSize::title   ? kTitle
                          : size == TypeSize::large ? kLarge
                                                    : kText;
  font.setPointSizeF(font.pointSizeF() * of_sheet / kText);
  return font;
}

int space() {
  static const int kUnit = static_cast<int>(pixels("unit"));
  return kUnit;
}

}  // namespace shardplan::gui
