// The windows' own texts in their language: what tr() asks Qt for is looked up in the store of all
// words (data/words). The English text is the id; which class asks makes no difference.
#pragma once

#include <QTranslator>

namespace shardplan::gui {

/// Answers in the language of QLocale's default.
class WordTranslator : public QTranslator {
 public:
  QString translate(const char* context, const char* english, const char* disambiguation,
                    int count) const override;
  bool isEmpty() const override { return false; }
};

}  // namespace shardplan::gui
