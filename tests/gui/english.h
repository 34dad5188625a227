// Whether a text in another language has English left in it.
#pragma once

#include <QRegularExpression>
#include <QString>

namespace shardplan::gui {

/// Whether English is left beside names, values and what a person typed: a small word that every
/// English sentence has, or two plain words in a row, but for a key and its value ("framework
/// ddp").
inline bool has_english(const QString& message) {
  static const QRegularExpression kSmallWords(
      QStringLiteral("\\b(the|is|are|not|of|an|or|such|expected|found|unknown|cannot|has|no|must|"
                     "with|between|from)\\b"));
  static const QRegularExpression kTwoWords(
      QStringLiteral("\\b(?!framework|trainer|checkpointing|compile|policy|method|kind|placement|"
                     "kernels|compute|model)[a-z]{2,} [a-z]{2,}\\b"));
  QString plain = message;
  plain.remove(QRegularExpression(QStringLiteral("'[^']*'|\"[^\"]*\"|「[^」]*」|`[^`]*`")));
  return plain.contains(kSmallWords) || plain.contains(kTwoWords);
}

}  // namespace shardplan::gui
