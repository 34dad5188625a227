// The terms of the windows and what they mean: for the list of terms and for "What is this?".
#pragma once

#include <QCoreApplication>
#include <QString>
#include <QStringList>
#include <vector>

namespace shardplan::gui {

struct Term {
  QString name;      ///< in the language of the windows
  QString meaning;   ///< two or three sentences
  QStringList also;  ///< other words for it, in which a text mentions it
};

class Terms {
  Q_DECLARE_TR_FUNCTIONS(Terms)

 public:
  /// In the order in which a person meets them.
  static std::vector<Term> all();
  /// Those that a text mentions.
  static std::vector<Term> in(const QString& text);
  /// Those that have all words of `wanted` in their name or meaning.
  static std::vector<Term> with(const QString& wanted);
  /// A title, what is to be said, and the terms that it mentions: markup.
  static QString explained(const QString& title, const QString& said);

 private:
  static void add_memory(std::vector<Term>& to);
  static void add_division(std::vector<Term>& to);
  static void add_training(std::vector<Term>& to);
  static void add_answers(std::vector<Term>& to);
};

}  // namespace shardplan::gui
