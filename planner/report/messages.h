// The words of a report in the reader's language: messages and cells, filled from the store.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/report.h"
#include "words/store.h"

namespace shardplan::report {

class Messages {
 public:
  /// `language` is one of languages().
  explicit Messages(std::string_view language) : store_(language) {}

  const WordStore& store() const { return store_; }
  const std::string& language() const { return store_.language(); }

  /// The message with its placeholders filled. A key that is not in the store is a mistake of this
  /// program: std::logic_error.
  std::string text(const Text& text) const;
  std::string text(const std::string& key) const;

  /// What a cell shows, "" for an empty one.
  std::string cell(const Cell& cell) const;

  /// Core's words in this language; nullopt when no phrase matches.
  std::optional<std::string> phrase(std::string_view english) const {
    return store_.phrase(english);
  }

 private:
  WordStore store_;
};

}  // namespace shardplan::report
