#include "import/shell_branches.h"

#include <charconv>
#include <optional>

namespace shardplan::importing {
namespace {

std::optional<long long> whole(const std::string& text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Truth truth(bool value) {
  return value ? Truth::yes : Truth::no;
}

Truth inverse(Truth value) {
  return value == Truth::unknown ? value : truth(value == Truth::no);
}

Truth compared(const std::string& left, const std::string& how, const std::string& right) {
  if (how == "=" || how == "==" || how == "!=") {
    if (right.find_first_of("*?[") != right.npos) return Truth::unknown;  // a pattern
    return truth((left == right) == (how != "!="));
  }
  const auto a = whole(left);
  const auto b = whole(right);
  if (!a || !b) return Truth::unknown;
  if (how == "-eq") return truth(*a == *b);
  if (how == "-ne") return truth(*a != *b);
  if (how == "-gt") return truth(*a > *b);
  if (how == "-ge") return truth(*a >= *b);
  if (how == "-lt") return truth(*a < *b);
  if (how == "-le") return truth(*a <= *b);
  return Truth::unknown;
}

Truth both(Truth a, Truth b) {
  if (a == Truth::no || b == Truth::no) return Truth::no;
  return a == Truth::yes && b == Truth::yes ? Truth::yes : Truth::unknown;
}

}  // namespace

Truth truth_of_test(std::span<const std::string> words) {
  bool test = false;
  bool opposite = false;
  for (; !words.empty(); words = words.subspan(1)) {
    if (words.front() == "[" || words.front() == "[[")
      test = true;
    else if (words.front() == "!")
      opposite = !opposite;
    else
      break;
  }
  for (; !words.empty() && (words.back() == "]" || words.back() == "]]");
       words = words.first(words.size() - 1))
    test = true;
  Truth found = Truth::unknown;  // a program's exit, a file that is there
  if (!test) {
    if (words.size() == 1 && (words[0] == "true" || words[0] == "false"))
      found = truth(words[0] == "true");
  } else if (words.size() == 1) {
    found = truth(!words[0].empty());
  } else if (words.size() == 2 && (words[0] == "-z" || words[0] == "-n")) {
    found = truth(words[1].empty() == (words[0] == "-z"));
  } else if (words.size() == 3) {
    found = compared(words[0], words[1], words[2]);
  }
  return opposite ? inverse(found) : found;
}

bool ShellBranches::guessing() const {
  for (const Branch& branch : open_)
    if (branch.guess) return true;
  return false;
}

void ShellBranches::begin_condition(Branch& branch) {
  branch.skip = branch.outside_skips || branch.taken;
  branch.in_condition = true;
  branch.first = true;
  branch.joined = '&';
  branch.condition = Truth::unknown;
}

bool ShellBranches::keeps_values() const {
  for (const Branch& branch : open_)
    if (branch.is_case && branch.guess) return true;
  return false;
}

void ShellBranches::begin_patterns(Branch& branch) {
  branch.expects_pattern = true;
  branch.patterns.clear();
}

bool ShellBranches::read_keyword(const std::string& word) {
  if (word == "if") {
    Branch branch;
    branch.outside_skips = skipping();
    open_.push_back(branch);
    begin_condition(open_.back());
    return true;
  }
  if (word == "case") {
    Branch branch;
    branch.is_case = true;
    branch.outside_skips = branch.skip = skipping();
    open_.push_back(branch);
    return false;  // its subject is a word of the command
  }
  if (open_.empty()) return false;
  Branch& branch = open_.back();
  if (branch.is_case) {
    if (word != "esac") return false;
    open_.pop_back();
  } else if (word == "fi") {
    open_.pop_back();
  } else if (word == "elif") {
    begin_condition(branch);
  } else if (word == "else") {
    branch.skip = branch.outside_skips || branch.taken;
  } else if (word == "then" && branch.in_condition) {
    branch.in_condition = false;
    branch.skip = branch.outside_skips || branch.taken || branch.condition == Truth::no;
    if (branch.condition == Truth::unknown) branch.guess = true;
    if (branch.condition == Truth::yes) branch.taken = true;
  } else {
    return false;
  }
  return true;
}

bool ShellBranches::end_command(std::span<const std::string> words, bool known) {
  if (open_.empty() || words.empty()) return false;
  Branch& branch = open_.back();
  if (branch.is_case && words.front() == "case") {
    branch.known_subject = known && words.size() == 3;
    branch.subject = branch.known_subject ? words[1] : "";
    begin_patterns(branch);
  } else if (branch.expects_pattern) {
    branch.patterns.insert(branch.patterns.end(), words.begin(), words.end());
    return true;
  }
  if (!branch.in_condition) return false;
  const Truth here = known ? truth_of_test(words) : Truth::unknown;
  if (branch.first)
    branch.condition = here;
  else if (branch.joined == '&')
    branch.condition = both(branch.condition, here);
  else
    branch.condition = inverse(both(inverse(branch.condition), inverse(here)));
  branch.first = false;
  return false;
}

void ShellBranches::join(char with) {
  if (!open_.empty() && open_.back().in_condition) open_.back().joined = with;
}

void ShellBranches::end_pattern() {
  if (open_.empty() || !open_.back().expects_pattern) return;
  Branch& branch = open_.back();
  branch.expects_pattern = false;
  bool matches = false;
  bool guess = !branch.known_subject;
  for (const std::string& pattern : branch.patterns) {
    matches = matches || pattern == "*" || pattern == branch.subject;
    guess = guess || (pattern != "*" && pattern.find_first_of("*?[") != pattern.npos);
  }
  branch.guess = guess;
  branch.skip = branch.outside_skips || branch.taken || (!guess && !matches);
  if (matches && !guess) branch.taken = true;
}

void ShellBranches::end_branch() {
  if (!open_.empty() && open_.back().is_case) begin_patterns(open_.back());
}

}  // namespace shardplan::importing
