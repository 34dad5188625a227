#include "import/command_line.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/ascii.h"
#include "import/arithmetic.h"
#include "import/shell_branches.h"

namespace shardplan::importing {
namespace {

constexpr std::size_t kMostWords = 20'000;
constexpr std::size_t kLongestValue = 100'000;

bool is_name_char(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

using Variables = std::map<std::string, std::vector<std::string>>;

/// The end of "(...)" or "{...}" that begins at `at`; npos without one.
std::size_t closing(std::string_view text, std::size_t at, char open, char close) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at;
  }
  return std::string_view::npos;
}

class Shell {
 public:
  explicit Shell(std::string_view text) : text_(text) {}

  std::vector<Command> parse() {
    while (at_ < text_.size() && count_ < kMostWords) step();
    end_command();
    return std::move(commands_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void step() {
    const char c = peek();
    if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\r' ? std::size_t{3} : std::size_t{2};
      ++line_;
    } else if (c == '\n') {
      ++line_;
      ++at_;
      if (!in_array_) end_command();
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (c == ')' && in_array_) {
      ++at_;
      in_array_ = false;
    } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
      ++at_;
      if (in_array_) return;
      end_command();
      if (c == ')') branches_.end_pattern();
      if (c == '&' || c == '|') branches_.join(c);
      if (c == ';' && peek() == ';') {
        ++at_;
        branches_.end_branch();
      }
    } else if (text_.substr(at_).starts_with("<<<")) {
      at_ += 3;
      read_here_string();
    } else if (c == '<' && text_.substr(at_).starts_with("<<") && !words_.empty() &&
               words_.front().text == "read") {
      read_here_document();
    } else if (c == '<' || c == '>') {
      ++at_;
    } else {
      read_word();
    }
  }

  /// NAME=, NAME+= at the start of a command or behind "export".
  bool read_assignment() {
    if (!at_start()) return false;
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    const bool adds = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
    if (end == at_ || (!adds && (end >= text_.size() || text_[end] != '='))) return false;
    const std::string name(text_.substr(at_, end - at_));
    at_ = end + (adds ? 2 : 1);
    const auto had = variables_.find(name);
    const bool has_value = had != variables_.end() && !had->second.empty();
    const bool passed_over = branches_.skipping() || (branches_.keeps_values() && has_value);
    if (peek() == '(') {
      ++at_;
      in_array_ = true;
      array_ = passed_over ? "" : name;  // no variable has that name
      before_ = variables_[name];
      if (!adds) variables_[array_].clear();
      return true;
    }
    // A shell splits nothing here: `A=${B:-"-m x"}` is one text.
    const bool only_given = !adds && is_positional();
    std::string whole;
    met_unknown_ = false;
    const std::vector<std::string> words = expand();
    if (passed_over) return true;
    if (met_unknown_ || branches_.guessing())
      guessed_.insert(name);
    else if (!adds)
      guessed_.erase(name);
    for (std::size_t i = 0; i < words.size(); ++i) append(whole, i > 0 ? " " + words[i] : words[i]);
    std::vector<std::string>& value = variables_[name];  // until here the one that it had
    // `--batch) BATCH="$2"` of a loop over the script's own arguments: the usual value counts.
    if (only_given && !value.empty()) return true;
    if (!adds) value.clear();
    if (adds && !value.empty())
      append(value.back(), whole);
    else if (!words.empty())
      value.push_back(std::move(whole));
    assigned_.push_back(name);
    return true;
  }

  /// `read ... NAME <<END`: the lines up to END are the variable's text.
  void read_here_document() {
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
      variables_[words_.back().text] = {fmt::format("{}", fmt::join(inner.expand(), " "))};
    end_command();
  }

  /// `read ... NAME <<< TEXT`: the words of the text, one a variable, the rest to the last.
  void read_here_string() {
    while (peek() == ' ' || peek() == '\t') ++at_;
    std::vector<std::string> words;
    std::string word;
    split_into(expand(), word, words);
    if (!word.empty()) words.push_back(std::move(word));
    if (words_.empty() || words_.front().text != "read" || branches_.skipping()) return;
    for (std::size_t name = 1, next = 0; name < words_.size(); ++name) {
      if (words_[name].text.starts_with('-')) continue;
      std::vector<std::string>& value = variables_[words_[name].text];
      value.clear();
      if (next < words.size()) value.push_back(words[next++]);
      for (; name + 1 == words_.size() && next < words.size(); ++next)
        append(value.back(), " " + words[next]);
    }
  }

  /// Whether an argument of the script itself stands here: $2, "$2", ${2}.
  bool is_positional() const {
    std::string_view text = text_.substr(at_);
    for (const char c : {'"', '$', '{'})
      if (text.starts_with(c))
        text.remove_prefix(1);
      else if (c == '$')
        return false;
    return !text.empty() && is_digit(text.front());
  }

  /// Whether a command begins here, perhaps behind "export" or "do".
  bool at_start() const {
    return !in_array_ &&
           std::ranges::all_of(words_, [](const Word& w) { return is_declaration(w.text); });
  }

  static bool is_declaration(std::string_view word) {
    return word == "export" || word == "local" || word == "declare" || word == "readonly" ||
           word == "then" || word == "else" || word == "do" || word == "env";
  }

  void read_word() {
    if (read_assignment()) return;
    const int line = line_;
    const bool rest = is_rest();
    const bool first = at_start();
    if (first) met_unknown_ = false;
    const bool unknown_before = met_unknown_;
    met_unknown_ = false;
    std::vector<std::string> texts = expand();
    // --name "$2": nothing is known, and not the empty text.
    if (met_unknown_ && texts.size() == 1 && texts.front().empty()) texts.clear();
    met_unknown_ = met_unknown_ || unknown_before;
    if (first && texts.size() == 1 && branches_.read_keyword(texts.front())) return;
    if (texts.empty() && !rest && follows_argument()) texts.emplace_back(kUnset);
    for (std::string& text : texts) {
      if (++count_ > kMostWords) return;
      if (in_array_)
        variables_[array_].push_back(std::move(text));
      else
        words_.push_back({std::move(text), line});
    }
  }

  /// "$@" or a list stands here: further arguments, not the value of the one before them.
  bool is_rest() const {
    const std::string_view text = text_.substr(at_);
    const std::string_view bare = text.substr(text.starts_with('"') ? 1 : 0);
    const bool list = text.starts_with("${") && text.substr(0, text.find('}')).ends_with("[@]");
    return bare.starts_with("$@") || bare.starts_with("$*") || list || is_list();
  }

  static bool is_argument(std::string_view word) {
    return word.starts_with("--") && word.find('=') == word.npos;
  }
  /// Whether the last word is an argument that waits for a value.
  bool follows_argument() {
    if (!in_array_) return !words_.empty() && is_argument(words_.back().text);
    const std::vector<std::string>& array = variables_[array_];
    return !array.empty() && is_argument(array.back());
  }

  /// One word of the script: as many as its variables have, none where it is empty.
  std::vector<std::string> expand() {
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
        append(word, text_.substr(at_ + 1, end - at_ - 1));
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
        met_unknown_ = true;
      } else {
        word += c;
        ++at_;
        any = true;
      }
    }
    if (any && (!word.empty() || done.empty())) done.push_back(std::move(word));
    return done;
  }

  void count_lines(std::size_t begin, std::size_t end) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(begin),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
  }

  static void append(std::string& word, std::string_view text) {
    if (word.size() < kLongestValue) word += text;
  }

  /// Quoted text is one word, and as many as the array has for "${ARRAY[@]}".
  /// False for a list without words, which is no word either.
  bool read_quoted(std::string& word, std::vector<std::string>& done) {
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
        if (values.empty() && !list && stands_alone(word)) append(word, kUnset);
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (i > 0) {
            done.push_back(std::move(word));
            word.clear();
          }
          append(word, values[i]);
        }
      } else {
        if (peek() == '\n') ++line_;
        if (word.size() < kLongestValue) word += peek();
        ++at_;
      }
    }
    if (at_ < text_.size()) ++at_;
    return !list || done.size() + word.size() > before;
  }

  /// Whether what was just read is a whole value behind an argument in `word`.
  bool stands_alone(std::string_view word) const {
    const char next = peek();
    if (next != ' ' && next != '\n' && next != '\t' && next != '"' && next != '\\') return false;
    if (word.empty() || (word.back() != ' ' && word.back() != '\n')) return false;
    const std::size_t end = word.find_last_not_of(" \n\t");
    const std::size_t begin = end == word.npos ? word.npos : word.find_last_of(" \n\t", end) + 1;
    return end != word.npos && is_argument(word.substr(begin, end - begin + 1));
  }

  /// "${NAME[@]}" and nothing else between the quotes.
  bool is_list() const {
    const std::string_view rest = text_.substr(at_);
    const std::size_t end = rest.find('}');
    return rest.starts_with("\"${") && end != rest.npos && end + 1 < rest.size() &&
           rest[end + 1] == '"' && rest.substr(0, end).ends_with("[@]");
  }

  /// What is not quoted falls apart at spaces.
  static void split_into(const std::vector<std::string>& values, std::string& word,
                         std::vector<std::string>& done) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0 && !word.empty()) {
        done.push_back(std::move(word));
        word.clear();
      }
      for (const char c : values[i]) {
        if (c != ' ' && c != '\n' && c != '\t') {
          if (word.size() < kLongestValue) word += c;
        } else if (!word.empty()) {
          if (done.size() < kMostWords) done.push_back(std::move(word));
          word.clear();
        }
      }
    }
  }

  /// The value of what begins with '$'.
  std::vector<std::string> variable() {
    std::vector<std::string> value = value_of_variable();
    if (value.empty()) met_unknown_ = true;
    return value;
  }

  std::vector<std::string> value_of_variable() {
    ++at_;
    if (text_.substr(at_).starts_with("((")) {
      const std::size_t end = std::min(closing(text_, at_, '(', ')'), text_.size() - 1);
      const std::string sum = replaced(text_.substr(at_ + 2, end > at_ + 3 ? end - at_ - 3 : 0));
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
      const auto sum = arithmetic_value(replaced(program.substr(5)));
      return sum ? std::vector{std::to_string(*sum)} : std::vector<std::string>{};
    }
    if (peek() == '{') {
      const std::size_t end = std::min(closing(text_, at_, '{', '}'), text_.size());
      const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
      at_ = std::min(end + 1, text_.size());
      return braced(inside, 0);
    }
    if (is_digit(peek()) || peek() == '@' || peek() == '*' || peek() == '#' || peek() == '?') {
      ++at_;
      return {};
    }
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    const std::string name(text_.substr(at_, end - at_));
    at_ = end;
    return value_of(name, false);
  }

  /// NAME, NAME[@], NAME:-otherwise.
  std::vector<std::string> braced(std::string_view inside, int depth) const {
    std::size_t end = 0;
    while (end < inside.size() && is_name_char(inside[end])) ++end;
    const std::string name(inside.substr(0, end));
    std::string_view rest = inside.substr(end);
    const bool all = rest.starts_with("[@]") || rest.starts_with("[*]");
    if (all) rest.remove_prefix(3);
    std::vector<std::string> value = value_of(name, all);
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
  std::vector<std::string> value_of(const std::string& name, bool all) const {
    const auto found = variables_.find(name);
    if (guessed_.contains(name)) met_unknown_ = true;
    if (found == variables_.end()) return {};
    const std::vector<std::string>& words = in_array_ && name == array_ ? before_ : found->second;
    if (words.empty() || all) return words;
    return {words.front()};
  }

  /// Names and $NAMEs of a sum as their values.
  std::string replaced(std::string_view sum) const {
    std::string out;
    for (std::size_t i = 0; i < sum.size();) {
      if (sum[i] == '$' || sum[i] == '{' || sum[i] == '}' || sum[i] == '\\') {
        ++i;
      } else if (is_name_char(sum[i]) && !is_digit(sum[i])) {
        std::size_t end = i;
        while (end < sum.size() && is_name_char(sum[end])) ++end;
        const auto value = value_of(std::string(sum.substr(i, end - i)), false);
        append(out, value.empty() ? "?" : value.front());
        i = end;
      } else {
        out += sum[i++];
      }
    }
    return out;
  }

  void end_command() {
    Command command;
    for (const std::string& name : assigned_) {
      const auto found = variables_.find(name);
      if (found != variables_.end() && !found->second.empty())
        command.environment[name] = found->second.front();
    }
    std::vector<std::string> texts;
    for (const Word& word : words_) texts.push_back(word.text);
    const bool skipped = branches_.skipping();
    const bool is_pattern = branches_.end_command(texts, !met_unknown_);
    const auto begin =
        std::ranges::find_if_not(words_, [](const Word& w) { return is_declaration(w.text); });
    words_.erase(words_.begin(), begin);
    if (!words_.empty() && !skipped && !is_pattern) {
      command.words = std::move(words_);
      commands_.push_back(std::move(command));
    }
    words_.clear();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t count_ = 0;
  bool in_array_ = false;
  std::string array_;
  std::vector<std::string> before_;  ///< words of that array before it was assigned
  Variables variables_;
  std::set<std::string> guessed_;     ///< variables of which only a caller's shell knows the value
  mutable bool met_unknown_ = false;  ///< since the command or the value began
  ShellBranches branches_;
  std::vector<std::string> assigned_;
  std::vector<Word> words_;
  std::vector<Command> commands_;
};

}  // namespace

std::vector<Command> parse_shell(std::string_view script) {
  return Shell(script).parse();
}

}  // namespace shardplan::importing
