#include <algorithm>

#include "base/ascii.h"
#include "import/arithmetic.h"
#include "import/shell.h"

namespace shardplan::importing {
namespace {

/// The end of "(...)" or "{...}" that begins at `at`; npos without one.
std::size_t closing(std::string_view text, std::size_t at, char open, char close) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace

/// One word of the script: as many as its variables have, none where it is empty.
std::vector<std::string> Shell::expand() {
  std::vector<std::string> done;
  std::string word;
  bool any = false;
  while (at_ < text_.size()) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';' || c == '|' || c == '&' ||
        c == ')' || c == '(' || c == '<' || c == '>')
      break;
    if (c == '\\' && (peek(1) == '\n' || peek(1) == '\r')) break;
    if (c == '\\') {
      if (at_ + 1 < text_.size()) word += peek(1);
      at_ = std::min(at_ + 2, text_.size());
      any = true;
    } else if (c == '\'') {
      const std::size_t end = std::min(text_.find('\'', at_ + 1), text_.size());
      append_text(word, text_.substr(at_ + 1, end - at_ - 1));
      count_lines(at_, end);
      at_ = std::min(end + 1, text_.size());
      any = true;
    } else if (c == '"') {
      any = read_quoted(word, done) || any;
    } else if (c == '$') {
      split_into(variable(), word, done);
      any = any || !word.empty();
    } else if (c == '`') {
      at_ = std::min(text_.find('`', at_ + 1), text_.size() - 1) + 1;
      variables_.set_met_unknown(true);
    } else {
      word += c;
      ++at_;
      any = true;
    }
  }
  if (any && (!word.empty() || done.empty())) done.push_back(std::move(word));
  return done;
}

void Shell::count_lines(std::size_t begin, std::size_t end) {
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                       text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
}

/// Quoted text is one word, and as many as the array has for "${ARRAY[@]}".
/// False for a list without words, which is no word either.
bool Shell::read_quoted(std::string& word, std::vector<std::string>& done) {
  const bool list = text_.substr(at_).starts_with("\"$@\"") || is_list();
  ++at_;
  const std::size_t before = done.size() + word.size();
  while (at_ < text_.size() && peek() != '"') {
    if (peek() == '\\' && at_ + 1 < text_.size()) {
      if (peek(1) == '\n') ++line_;
      if (peek(1) != '\n') word += peek(1);
      at_ += 2;
    } else if (peek() == '$') {
      const std::vector<std::string> values = variable();
      if (values.empty() && !list && stands_alone(word)) append_text(word, kUnset);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i > 0) {
          done.push_back(std::move(word));
          word.clear();
        }
        append_text(word, values[i]);
      }
    } else {
      if (peek() == '\n') ++line_;
      append_text(word, text_.substr(at_, 1));
      ++at_;
    }
  }
  if (at_ < text_.size()) ++at_;
  return !list || done.size() + word.size() > before;
}

/// Whether what was just read is a whole value behind an argument in `word`.
bool Shell::stands_alone(std::string_view word) const {
  const char next = peek();
  if (next != ' ' && next != '\n' && next != '\t' && next != '"' && next != '\\') return false;
  if (word.empty() || (word.back() != ' ' && word.back() != '\n')) return false;
  const std::size_t end = word.find_last_not_of(" \n\t");
  const std::size_t begin = end == word.npos ? word.npos : word.find_last_of(" \n\t", end) + 1;
  return end != word.npos && is_argument(word.substr(begin, end - begin + 1));
}

/// "${NAME[@]}" and nothing else between the quotes.
bool Shell::is_list() const {
  const std::string_view rest = text_.substr(at_);
  const std::size_t end = rest.find('}');
  return rest.starts_with("\"${") && end != rest.npos && end + 1 < rest.size() &&
         rest[end + 1] == '"' && rest.substr(0, end).ends_with("[@]");
}

/// What is not quoted falls apart at spaces.
void Shell::split_into(const std::vector<std::string>& values, std::string& word,
                       std::vector<std::string>& done) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && !word.empty()) {
      done.push_back(std::move(word));
      word.clear();
    }
    for (const char c : values[i]) {
      if (c != ' ' && c != '\n' && c != '\t') {
        append_text(word, {&c, 1});
      } else if (!word.empty()) {
        if (done.size() < kMostWords) done.push_back(std::move(word));
        word.clear();
      }
    }
  }
}

/// The value of what begins with '$'.
std::vector<std::string> Shell::variable() {
  std::vector<std::string> value = value_of_variable();
  if (value.empty()) variables_.set_met_unknown(true);
  return value;
}

std::vector<std::string> Shell::value_of_variable() {
  ++at_;
  if (text_.substr(at_).starts_with("((")) {
    const std::size_t end = std::min(closing(text_, at_, '(', ')'), text_.size() - 1);
    const std::string sum =
        variables_.replaced(text_.substr(at_ + 2, end > at_ + 3 ? end - at_ - 3 : 0));
    at_ = end + 1;
    const auto value = arithmetic_value(sum);
    return value ? std::vector{std::to_string(*value)} : std::vector<std::string>{};
  }
  if (peek() == '(') {
    const std::size_t end = std::min(closing(text_, at_, '(', ')'), text_.size() - 1);
    const std::string_view program = text_.substr(at_ + 1, end > at_ ? end - at_ - 1 : 0);
    count_lines(at_, end);
    at_ = end + 1;
    if (!program.starts_with("expr ")) return {};
    const auto sum = arithmetic_value(variables_.replaced(program.substr(5)));
    return sum ? std::vector{std::to_string(*sum)} : std::vector<std::string>{};
  }
  if (peek() == '{') {
    const std::size_t end = std::min(closing(text_, at_, '{', '}'), text_.size());
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = std::min(end + 1, text_.size());
    std::vector<std::string> value = variables_.braced(inside, 0);
    // `: "${NAME:=4096}"`: from here on the variable has that value.
    const std::string name(inside.substr(0, inside.find(":=")));
    const bool assigns =
        !name.empty() && name.size() < inside.size() && std::ranges::all_of(name, is_name_char);
    if (assigns && variables_.first_word(name) == nullptr && !branches_.skipping())
      variables_.of(name) = value;
    return value;
  }
  if (is_digit(peek()) || peek() == '@' || peek() == '*' || peek() == '#' || peek() == '?') {
    ++at_;
    return {};
  }
  std::size_t end = at_;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  const std::string name(text_.substr(at_, end - at_));
  at_ = end;
  return variables_.value_of(name, false);
}

}  // namespace shardplan::importing
