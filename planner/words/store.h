// Words for people: the one loader of data/words, for the command line, reports, the linter and the
// windows. A folder a language:
//   report.json  messages by id ("fit.fits"), English like the others; and phrases: sentences that
//                core wrote, by their English pattern ("ZeRO stage {stage}")
//   lint.json    title, explanation and advice of rules, by the rule's id; what findings say, by
//   the English
//                pattern of say() (core/base/said.h)
//   window.json  what the windows show, by the English text
// Where English is written once, in a rule's file, at a finding's values or in a window, it is the
// id itself and there is no English copy that could differ.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/said.h"
#include "load/ds_config/rule.h"

namespace shardplan {

/// "en", "ja", "ko": the folders below data/words, which --language takes.
std::vector<std::string> languages();

class WordStore {
 public:
  /// What stands in the placeholders of a message, by their names.
  using Values = std::vector<std::pair<std::string, std::string>>;

  /// `language` is one of languages().
  explicit WordStore(std::string_view language);

  const std::string& language() const { return language_; }

  /// The message with its placeholders filled. An id that is not there is a mistake of this
  /// program: std::logic_error.
  std::string message(std::string_view id, const Values& values = {}) const;

  /// Core's words in this language; nullopt when no phrase matches. English has them all.
  std::optional<std::string> phrase(std::string_view english) const;

  /// What a rule or a loader says, by its pattern; as a phrase, or in English, where there is none.
  std::string say(const Said& said) const;

  std::string title_of(const Rule& rule) const;
  std::string explanation_of(const Rule& rule) const;
  std::string advice_of(const Rule& rule) const;

  /// A text of the windows; nullopt in English, and where it is not a window's.
  std::optional<std::string> window(std::string_view english) const;

 private:
  struct Entry {
    std::string id, words;
  };
  using Topic = std::vector<Entry>;  ///< sorted by id

  static Topic sorted(Topic topic);
  static const std::string* find(const Topic& topic, std::string_view id);

  std::string language_;
  Topic messages_, titles_, explanations_, advice_, sentences_, window_;
  std::vector<Entry> phrases_;  ///< in the order of the file: the first that matches
};

/// The values of the placeholders of `pattern` ("stage {n}") in `text`, or nullopt when it does not
/// match. A placeholder takes as little as it can, and at least one character.
std::optional<WordStore::Values> match_pattern(std::string_view pattern, std::string_view text);

}  // namespace shardplan
