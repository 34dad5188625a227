#include "import/shell_variables.h"

#include "base/ascii.h"

namespace shardplan::importing {
namespace {

constexpr std::size_t kLongestValue = 100'000;

}  // namespace

bool is_name_char(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

void append_text(std::string& word, std::string_view text) {
  if (word.size() < kLongestValue) word += text;
}

const std::string* ShellVariables::first_word(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() || found->second.empty() ? nullptr : &found->second.front();
}

void ShellVariables::begin_list(const std::string& name, bool adds, bool kept) {
  in_list_ = true;
  list_ = kept ? name : "";  // no variable has that name
  before_ = values_[name];
  if (!adds) values_[list_].clear();
}

/// NAME, NAME[@], NAME:-otherwise.
ShellVariables::Words ShellVariables::braced(std::string_view inside, int depth) const {
  std::size_t end = 0;
  while (end < inside.size() && is_name_char(inside[end])) ++end;
  const std::string name(inside.substr(0, end));
  std::string_view rest = inside.substr(end);
  const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
  if (all) rest.remove_prefix(3);
  Words value = value_of(name, all);
  const bool otherwise = rest.starts_with(":-") || rest.starts_with(":=");
  // ${NAME##*/} and its like are parts of the value.
  if (!rest.empty() && !otherwise && !rest.starts_with("-")) return {};
  const bool unset = value.empty() || (value.size() == 1 && value.front().empty());
  if (!unset || !(otherwise || rest.starts_with("-"))) return value;
  rest.remove_prefix(otherwise ? 2 : 1);
  if (rest.size() >= 2 && (rest.front() == '"' || rest.front() == '\'') &&
      rest.back() == rest.front())
    rest = rest.substr(1, rest.size() - 2);
  if (depth < 10 && rest.starts_with("${") && rest.ends_with("}"))
    return braced(rest.substr(2, rest.size() - 3), depth + 1);
  if (rest.starts_with("$")) return value_of(std::string(rest.substr(1)), false);
  return {std::string(rest)};
}

/// A list that is being written has its former words: NAME=("${NAME[@]}" more).
ShellVariables::Words ShellVariables::value_of(const std::string& name, bool all) const {
  const auto found = values_.find(name);
  if (guessed_.contains(name)) met_unknown_ = true;
  if (found == values_.end()) return {};
  const Words& words = in_list_ && name == list_ ? before_ : found->second;
  if (words.empty() || all) return words;
  return {words.front()};
}

/// Names and $NAMEs of a sum as their values.
std::string ShellVariables::replaced(std::string_view sum) const {
  std::string out;
  for (std::size_t i = 0; i < sum.size();) {
    if (sum[i] == '$' || sum[i] == '{' || sum[i] == '}' || sum[i] == '\\') {
      ++i;
    } else if (is_name_char(sum[i]) && !is_digit(sum[i])) {
      std::size_t end = i;
      while (end < sum.size() && is_name_char(sum[end])) ++end;
      const auto value = value_of(std::string(sum.substr(i, end - i)), false);
      append_text(out, value.empty() ? "?" : value.front());
      i = end;
    } else {
      out += sum[i++];
    }
  }
  return out;
}

}  // namespace shardplan::importing
