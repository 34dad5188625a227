#include "models/core_words.h"

#include <QLocale>
#include <QStringList>
#include <map>

#include "models/text.h"
#include "report/messages.h"
#include "report/words.h"

namespace shardplan::gui {
namespace {

/// The store is read once for each language that was ever chosen. Only windows ask for words,
/// all from one thread.
const report::Messages& messages() {
  static std::map<QString, report::Messages> read;
  const QString now = language();
  return read.try_emplace(now, now.toStdString()).first->second;
}

}  // namespace

/// Asked for every word: the names of the folders are read once.
QString language() {
  static const QStringList known = [] {
    QStringList names;
    for (const std::string& name : languages()) names += text(name);
    return names;
  }();
  const QString code = QLocale().name().left(2);
  return known.contains(code) ? code : QStringLiteral("en");
}

QString words(std::string_view english) {
  return text(messages().phrase(english).value_or(std::string(english)));
}

QString note_words(std::string_view note) {
  for (const char* prefix : {"", "cluster: ", "model: "}) {
    const std::string whole = prefix + std::string(note);
    const auto said = messages().phrase(whole);
    if (!said || *said == whole) continue;
    const QString translated = text(*said);
    return *prefix == '\0' ? translated
                           : translated.mid(translated.indexOf(QStringLiteral(": ")) + 2);
  }
  return text(std::string(note));
}

QString said(const Said& sentence) {
  return text(word_store().say(sentence));
}

QString words(const report::Text& said) {
  return text(messages().text(said));
}

QString title_of(const Rule& rule) {
  return text(word_store().title_of(rule));
}

QString explanation_of(const Rule& rule) {
  return text(word_store().explanation_of(rule));
}

QString advice_of(const Rule& rule) {
  return text(word_store().advice_of(rule));
}

const WordStore& word_store() {
  return messages().store();
}

QString cell_words(const report::Cell& cell) {
  return text(messages().cell(cell));
}

QString words(Source source) {
  return words(report::message("source." + std::string(name_of(source))));
}

}  // namespace shardplan::gui
