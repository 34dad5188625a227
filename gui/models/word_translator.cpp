#include "models/word_translator.h"

#include "models/core_words.h"
#include "models/text.h"

namespace shardplan::gui {

QString WordTranslator::translate(const char*, const char* english, const char*, int) const {
  const auto words = word_store().window(english);
  return words ? text(*words) : QString();  // null: Qt goes on with its own words, then English
}

}  // namespace shardplan::gui
