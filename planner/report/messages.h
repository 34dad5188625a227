// The words of a report in the reader's language: data/messages, one file a language.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/said.h"
#include "report/report.h"

namespace shardplan::report {

/// "en", "ja", "ko": the files below data/messages, which --language takes.
std::vector<std::string> report_languages();

class Messages {
 public:
  /// `language` is one of report_languages().
  explicit Messages(std::string_view language);

  const std::string& language() const { return language_; }

  /// The message with its placeholders filled. A key that is not in the catalogue is a mistake of
  /// this program: std::logic_error.
  std::string text(const Text& text) const;
  std::string text(const std::string& key) const;

  /// What a cell shows, "" for an empty one.
  std::string cell(const Cell& cell) const;

  /// Core's words in this language; nullopt when the phrase book has none. English has them all.
  std::optional<std::string> phrase(std::string_view english) const;

  /// What a rule of the linter or a loader says, by its pattern: data/lint, one file a language.
  std::string say(const Said& said) const;

 private:
  struct Entry {
    std::string key, words;
  };
  std::string language_;
  std::vector<Entry> messages_;  ///< sorted by key
  std::vector<Entry> phrases_;   ///< patterns with placeholders, in the order of the file
  std::vector<Entry> said_;      ///< sorted by pattern
};

/// The values of the placeholders of `pattern` ("stage {n}") in `text`, or nullopt when it does not
/// match. A placeholder takes as little as it can, and at least one character.
std::optional<std::vector<std::pair<std::string, std::string>>> match_pattern(
    std::string_view pattern, std::string_view text);

}  // namespace shardplan::report
