#include "import/module_names.h"

#include <algorithm>

#include "base/ascii.h"

namespace shardplan::importing {
namespace {

constexpr std::size_t kMostExpanded = 4096;
constexpr int kDeepestGroup = 40;

using Words = std::vector<std::string>;

/// All words of an expression: groups and alternatives are written out, and what else stands for
/// several letters is left as it is.
class Expansion {
 public:
  explicit Expansion(std::string_view text) : text_(text) {}

  /// Empty where brackets do not match or there are too many words.
  Words words() {
    Words all = alternatives(0);
    return failed_ || at_ != text_.size() ? Words{} : all;
  }

 private:
  Words alternatives(int depth) {
    if (depth > kDeepestGroup) failed_ = true;
    Words all = sequence(depth);
    while (!failed_ && at_ < text_.size() && text_[at_] == '|') {
      ++at_;
      const Words more = sequence(depth);
      all.insert(all.end(), more.begin(), more.end());
      failed_ = failed_ || all.size() > kMostExpanded;
    }
    return all;
  }

  Words sequence(int depth) {
    Words all{""};
    while (!failed_ && at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      if (text_[at_] == '(')
        append(all, group(depth));
      else if (const Words each = letters_of_set(); !each.empty())
        append(all, each);
      else
        append(all, {letter()});
    }
    return all;
  }

  Words group(int depth) {
    ++at_;
    if (text_.substr(at_).starts_with("?:")) at_ += 2;
    Words all = alternatives(depth + 1);
    if (at_ >= text_.size() || text_[at_] != ')') {
      failed_ = true;
      return {};
    }
    ++at_;
    if (at_ < text_.size() && text_[at_] == '?') {  // there or not
      ++at_;
      all.emplace_back();
    }
    return all;
  }

  /// "[12]" as "1" and "2"; empty for what is no such set, has ranges or is repeated.
  Words letters_of_set() {
    if (text_[at_] != '[') return {};
    const std::size_t end = text_.find(']', at_);
    if (end == text_.npos || end == at_ + 1) return {};
    if (end + 1 < text_.size() &&
        std::string_view("*+?{").find(text_[end + 1]) != std::string::npos)
      return {};
    Words each;
    for (const char c : text_.substr(at_ + 1, end - at_ - 1)) {
      if (!is_digit(c) && !is_letter(c) && c != '_') return {};
      each.emplace_back(1, c);
    }
    at_ = end + 1;
    return each;
  }

  /// One letter, a set of them, or an escaped one; an escaped point is a point.
  std::string letter() {
    const std::size_t begin = at_++;
    if (text_[begin] == '[') {
      while (at_ < text_.size() && text_[at_] != ']') ++at_;
      if (at_ == text_.size()) failed_ = true;
      ++at_;
    } else if (text_[begin] == '\\' && at_ < text_.size()) {
      ++at_;
      if (text_[begin + 1] == '.') return ".";
    }
    return failed_ ? "" : std::string(text_.substr(begin, at_ - begin));
  }

  void append(Words& all, const Words& more) {
    if (failed_ || all.size() * more.size() > kMostExpanded) {
      failed_ = true;
      return;
    }
    Words longer;
    longer.reserve(all.size() * more.size());
    for (const std::string& word : all)
      for (const std::string& end : more) longer.push_back(word + end);
    all = std::move(longer);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

/// What stands behind the last point outside of a set of letters.
std::string_view last_part(std::string_view word) {
  bool in_set = false;
  for (std::size_t i = word.size(); i > 0; --i) {
    if (word[i - 1] == ']') in_set = true;
    if (word[i - 1] == '[') in_set = false;
    if (word[i - 1] == '.' && !in_set) return word.substr(i);
  }
  return word;
}

}  // namespace

std::vector<std::string> last_names(std::string_view expression) {
  Words names;
  for (const std::string& word : Expansion(expression).words()) {
    std::string_view last = last_part(word);
    // A pattern of file names begins so; no expression can begin with '*'.
    while (last.starts_with('^') || last.starts_with('*')) last.remove_prefix(1);
    while (last.ends_with('$')) last.remove_suffix(1);
    if (last.empty() || last.find_first_of("*\\[]^$+?{}") != last.npos) return {};
    if (std::find(names.begin(), names.end(), last) == names.end()) names.emplace_back(last);
  }
  return names;
}

}  // namespace shardplan::importing
