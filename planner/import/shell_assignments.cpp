#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"
#include "import/shell.h"

namespace shardplan::importing {

/// NAME=, NAME+= at the start of a command or behind "export".
bool Shell::read_assignment() {
  if (!at_start()) return false;
  std::size_t end = at_;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  const bool adds = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
  if (end == at_ || (!adds && (end >= text_.size() || text_[end] != '='))) return false;
  const std::string name(text_.substr(at_, end - at_));
  at_ = end + (adds ? 2 : 1);
  const bool has_value = variables_.first_word(name) != nullptr;
  const bool passed_over = branches_.skipping() || (branches_.keeps_values() && has_value);
  if (peek() == '(') {
    ++at_;
    variables_.begin_list(name, adds, !passed_over);
    return true;
  }
  // A shell splits nothing here: `A=${B:-"-m x"}` is one text.
  const bool only_given = !adds && is_positional();
  std::string whole;
  variables_.set_met_unknown(false);
  const std::vector<std::string> words = expand();
  if (passed_over) return true;
  if (variables_.met_unknown() || branches_.guessing())
    variables_.guess(name);
  else if (!adds)
    variables_.know(name);
  for (std::size_t i = 0; i < words.size(); ++i)
    append_text(whole, i > 0 ? " " + words[i] : words[i]);
  std::vector<std::string>& value = variables_.of(name);  // until here the one that it had
  // `--batch) BATCH="$2"` of a loop over the script's own arguments: the usual value counts.
  if (only_given && !value.empty()) return true;
  if (!adds) value.clear();
  if (adds && !value.empty())
    append_text(value.back(), whole);
  else if (!words.empty())
    value.push_back(std::move(whole));
  assigned_.push_back(name);
  return true;
}

/// `read ... NAME <<END`: the lines up to END are the variable's text.
void Shell::read_here_document() {
  const std::size_t line_end = std::min(text_.find('\n', at_), text_.size());
  std::string_view end = text_.substr(at_ + 2, line_end - at_ - 2);
  if (end.starts_with('-')) end.remove_prefix(1);
  end = end.substr(0, end.find_last_not_of(" \t\r") + 1);
  const bool quoted = end.size() > 1 && (end.front() == '\'' || end.front() == '"');
  if (quoted) end = end.substr(1, end.size() - 2);
  std::string body;
  at_ = std::min(line_end + 1, text_.size());
  ++line_;
  while (at_ < text_.size()) {
    const std::size_t next = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, next - at_);
    at_ = std::min(next + 1, text_.size());
    ++line_;
    if (const std::size_t word = line.find_first_not_of('\t');
        word != line.npos && line.substr(word) == end)
      break;
    for (const char c : line) {
      if (c == '"' || (quoted && c == '$')) body += '\\';
      body += c;
    }
    body += '\n';
  }
  const std::string whole = '"' + body + '"';
  Shell inner(whole);
  inner.variables_ = variables_;
  if (!branches_.skipping())
    variables_.of(words_.back().text) = {fmt::format("{}", fmt::join(inner.expand(), " "))};
  end_command();
}

/// `read ... NAME <<< TEXT`: the words of the text, one a variable, the rest to the last.
void Shell::read_here_string() {
  while (peek() == ' ' || peek() == '\t') ++at_;
  std::vector<std::string> words;
  std::string word;
  split_into(expand(), word, words);
  if (!word.empty()) words.push_back(std::move(word));
  if (words_.empty() || words_.front().text != "read" || branches_.skipping()) return;
  for (std::size_t name = 1, next = 0; name < words_.size(); ++name) {
    if (words_[name].text.starts_with('-')) continue;
    std::vector<std::string>& value = variables_.of(words_[name].text);
    value.clear();
    if (next < words.size()) value.push_back(words[next++]);
    for (; name + 1 == words_.size() && next < words.size(); ++next)
      append_text(value.back(), " " + words[next]);
  }
}

/// Whether an argument of the script itself stands here: $2, "$2", ${2}.
bool Shell::is_positional() const {
  std::string_view text = text_.substr(at_);
  for (const char c : {'"', '$', '{'})
    if (text.starts_with(c))
      text.remove_prefix(1);
    else if (c == '$')
      return false;
  return !text.empty() && is_digit(text.front());
}

}  // namespace shardplan::importing
