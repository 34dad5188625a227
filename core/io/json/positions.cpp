#include "json/positions.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "json/document.h"

namespace shardplan {
namespace {

/// One pass over the text. Containers are kept on a stack of their own, so nesting costs no calls.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  KeyPositions run() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    while (static_cast<int>(stack_.size()) <= kDeepestNesting && skip_blanks() && step()) {
    }
    return std::move(positions_);
  }

 private:
  struct Container {
    bool object = false;
    std::size_t path_size = 0;  ///< of the path to the container itself
    std::size_t index = 0;      ///< of the next array element
    bool expects_key = false;
  };

  TextPosition here() const { return {line_, column_}; }

  void next() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {  // one code point
      ++column_;
    }
  }

  /// False at the end of the text.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        while (at_ < text_.size() && text_[at_] != '\n') next();
      } else if (rest.starts_with("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        const std::size_t after = end == std::string_view::npos ? text_.size() : end + 2;
        while (at_ < after) next();
      } else if (rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\n') {
        next();
      } else {
        return true;
      }
    }
    return false;
  }

  /// The text of a string literal, escapes of one character resolved. Keys of configurations have
  /// no others.
  std::string string_literal() {
    std::string out;
    for (next(); at_ < text_.size() && text_[at_] != '"'; next()) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) next();
      out += text_[at_];
    }
    if (at_ < text_.size()) next();
    return out;
  }

  void open(bool object) {
    stack_.push_back({object, path_.size(), 0, object});
    next();
  }

  /// An element of an array begins: its path ends in its index.
  void begin_element() {
    if (stack_.empty() || stack_.back().object) return;
    Container& array = stack_.back();
    path_.resize(array.path_size);
    path_ += fmt::format("[{}]", array.index++);
    positions_.add(path_, here());
  }

  bool key() {
    if (text_[at_] != '"') return false;
    const TextPosition position = here();
    const std::string name = string_literal();
    path_.resize(stack_.back().path_size);
    if (!path_.empty()) path_ += '.';
    path_ += name;
    positions_.add(path_, position);
    stack_.back().expects_key = false;
    return true;
  }

  /// One token; false when the text is no JSON from here on, or its value is over.
  bool step() {
    const char c = text_[at_];
    if (c == '}' || c == ']') {
      if (stack_.empty()) return false;
      path_.resize(stack_.back().path_size);
      stack_.pop_back();
      next();
    } else if (c == ',') {
      if (stack_.empty()) return false;
      stack_.back().expects_key = stack_.back().object;
      next();
    } else if (c == ':') {
      next();
    } else if (!stack_.empty() && stack_.back().expects_key) {
      return key();
    } else {
      begin_element();
      value(c);
    }
    return true;
  }

  void value(char c) {
    if (c == '{' || c == '[') {
      open(c == '{');
    } else if (c == '"') {
      string_literal();
    } else {  // a number or a word
      do next();
      while (at_ < text_.size() &&
             std::string_view(",]} \t\r\n/").find(text_[at_]) == std::string_view::npos);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
  std::string path_;
  std::vector<Container> stack_;
  KeyPositions positions_;
};

/// The path of the block around the last part of `path`.
std::string_view parent_of(std::string_view path) {
  const std::size_t cut = path.find_last_of(".[");
  return cut == std::string_view::npos ? std::string_view() : path.substr(0, cut);
}

}  // namespace

void KeyPositions::add(std::string path, TextPosition position) {
  const bool added = places_.try_emplace(std::move(path), position).second;
  if (!added && !repeated_.known()) repeated_ = position;
}

TextPosition KeyPositions::find(std::string_view path) const {
  for (; !path.empty(); path = parent_of(path))
    if (const auto place = places_.find(path); place != places_.end()) return place->second;
  return {1, 1};
}

KeyPositions find_positions(std::string_view text) {
  return Scanner(text).run();
}

}  // namespace shardplan
