#include "models/line_breaks.h"

#include <algorithm>
#include <array>

namespace shardplan::gui {
namespace {

constexpr std::array<QStringView, 9> kUnits{u"B", u"KiB", u"MiB", u"GiB",     u"TiB",
                                            u"s", u"ms",  u"%",   u"tokens/s"};

}  // namespace

QString with_line_breaks(QString text) {
  text.replace(QLatin1Char('\n'), QChar(QChar::LineSeparator));
  for (qsizetype at = 1; at + 1 < text.size(); ++at) {
    if (text[at] != QLatin1Char(' ') || !text[at - 1].isDigit()) continue;
    const QStringView rest = QStringView(text).mid(at + 1);
    const bool is_unit = std::any_of(kUnits.begin(), kUnits.end(), [&](QStringView unit) {
      return rest.startsWith(unit) && (rest.size() == unit.size() || !rest[unit.size()].isLetter());
    });
    if (is_unit) text[at] = QChar(QChar::Nbsp);
  }
  return text;
}

}  // namespace shardplan::gui
