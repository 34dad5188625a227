#include "import/command_line.h"

#include <algorithm>

#include "import/shell.h"

namespace shardplan::importing {
namespace {

constexpr int kDeepestScript = 10;  // scripts within scripts

}  // namespace

void Shell::step() {
  const char c = peek();
  if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
    at_ += peek(1) == '\r' ? std::size_t{3} : std::size_t{2};
    ++line_;
  } else if (c == '\n') {
    ++line_;
    ++at_;
    if (!variables_.in_list()) end_command();
  } else if (c == ' ' || c == '\t' || c == '\r') {
    ++at_;
  } else if (c == '#') {
    while (at_ < text_.size() && peek() != '\n') ++at_;
  } else if (c == ')' && variables_.in_list()) {
    ++at_;
    variables_.end_list();
  } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
    ++at_;
    if (variables_.in_list()) return;
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

/// How many words of what is read stand before the command itself: "export", "do", "declare -a".
std::size_t Shell::before_command() const {
  std::size_t count = 0;
  bool takes_flags = false;
  for (; count < words_.size(); ++count) {
    const std::string& word = words_[count].text;
    if (takes_flags && word.starts_with('-')) continue;
    takes_flags = word == "export" || word == "local" || word == "declare" || word == "readonly" ||
                  word == "typeset";
    const bool opens = word == "then" || word == "else" || word == "do" || word == "env";
    if (!takes_flags && !opens) break;
  }
  return count;
}

bool Shell::at_start() const {
  return !variables_.in_list() && before_command() == words_.size();
}

void Shell::read_word() {
  if (read_assignment()) return;
  const int line = line_;
  const bool rest = is_rest();
  const bool first = at_start();
  if (first) variables_.set_met_unknown(false);
  const bool unknown_before = variables_.met_unknown();
  variables_.set_met_unknown(false);
  std::vector<std::string> texts = expand();
  // --name "$2": nothing is known, and not the empty text.
  if (variables_.met_unknown() && texts.size() == 1 && texts.front().empty()) texts.clear();
  variables_.set_met_unknown(variables_.met_unknown() || unknown_before);
  if (first && texts.size() == 1 && branches_.read_keyword(texts.front())) return;
  if (texts.empty() && !rest && follows_argument()) texts.emplace_back(kUnset);
  for (std::string& text : texts) {
    if (++count_ > kMostWords) return;
    if (variables_.in_list())
      variables_.list().push_back(std::move(text));
    else
      words_.push_back({std::move(text), line});
  }
}

/// "$@" or a list stands here: further arguments, not the value of the one before them.
bool Shell::is_rest() const {
  const std::string_view text = text_.substr(at_);
  const std::string_view bare = text.substr(text.starts_with('"') ? 1 : 0);
  const bool list = text.starts_with("${") && text.substr(0, text.find('}')).ends_with("[@]");
  return bare.starts_with("$@") || bare.starts_with("$*") || list || is_list();
}

/// Whether the last word is an argument that waits for a value.
bool Shell::follows_argument() {
  if (!variables_.in_list()) return !words_.empty() && is_argument(words_.back().text);
  const std::vector<std::string>& array = variables_.list();
  return !array.empty() && is_argument(array.back());
}

void Shell::end_command() {
  Command command;
  for (const std::string& name : assigned_) {
    if (const std::string* word = variables_.first_word(name)) command.environment[name] = *word;
  }
  std::vector<std::string> texts;
  for (const Word& word : words_) texts.push_back(word.text);
  const bool skipped = branches_.skipping();
  const bool is_pattern = branches_.end_command(texts, !variables_.met_unknown());
  words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(before_command()));
  if (!words_.empty() && !skipped && !is_pattern) {
    run_inner_script();
    command.words = std::move(words_);
    commands_.push_back(std::move(command));
  }
  words_.clear();
}

/// `srun bash -c '$LAUNCHER $CMD'`: the text is a script, over the variables that are there.
void Shell::run_inner_script() {
  for (std::size_t i = 0; i + 2 < words_.size(); ++i) {
    const bool shell = words_[i].text.ends_with("bash") || words_[i].text.ends_with("sh");
    if (!shell || !words_[i + 1].text.starts_with("-") || !words_[i + 1].text.ends_with("c"))
      continue;
    const std::string script = words_[i + 2].text;
    Shell inner(script);
    if (depth_ >= kDeepestScript) return;
    inner.depth_ = depth_ + 1;
    inner.line_ = words_[i + 2].line;
    inner.variables_ = variables_;
    inner.assigned_ = assigned_;
    for (Command& command : inner.parse()) commands_.push_back(std::move(command));
    words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i), words_.end());
    return;
  }
}

std::vector<Command> parse_shell(std::string_view script) {
  return Shell(script).parse();
}

}  // namespace shardplan::importing
