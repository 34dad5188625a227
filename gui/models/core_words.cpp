#include "models/core_words.h"

#include <QLocale>
#include <map>
#include <nlohmann/json.hpp>

#include "embedded/files.h"
#include "json/reader.h"
#include "models/text.h"
#include "report/messages.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

/// The catalogue is parsed once for each language that was ever chosen. Only windows ask for words,
/// all from one thread.
const report::Messages& messages() {
  static std::map<QString, report::Messages> read;
  const QString now = language();
  return read.try_emplace(now, now.toStdString()).first->second;
}

/// Titles by id, each language parsed once.
const Json& titles() {
  static std::map<QString, Json> read;
  const QString now = language();
  const auto it = read.find(now);
  if (it != read.end()) return it->second;
  const std::string path = "lint/titles." + now.toStdString() + ".json";
  return read[now] = parse_json(std::string(embedded_file(path)), path);
}

}  // namespace

QString language() {
  const QString code = QLocale().name().left(2);
  for (const std::string& known : report::report_languages())
    if (code.toStdString() == known) return code;
  return QStringLiteral("en");
}

QString words(std::string_view english) {
  return text(messages().phrase(english).value_or(std::string(english)));
}

QString said(const Said& sentence) {
  return text(messages().say(sentence));
}

QString words(const report::Text& said) {
  return text(messages().text(said));
}

QString title_of(const Rule& rule) {
  if (language() == QStringLiteral("en")) return text(rule.title);
  return QString::fromStdString(titles().at(std::string(rule.id.text())).get<std::string>());
}

QString words(Source source) {
  return words(report::message("source." + std::string(name_of(source))));
}

}  // namespace shardplan::gui
