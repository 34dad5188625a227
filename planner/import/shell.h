// A shell script's commands and words, as command_line.h says them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/command_line.h"
#include "import/shell_branches.h"
#include "import/shell_variables.h"

namespace shardplan::importing {

/// Reads a script from its beginning to its end.
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

  void step();
  std::size_t before_command() const;
  bool at_start() const;
  void read_word();
  void end_command();
  void run_inner_script();
  bool is_rest() const;
  static bool is_argument(std::string_view word) {
    return word.starts_with("--") && word.find('=') == word.npos;
  }
  bool follows_argument();

  // NAME=value, NAME=(list), `read` (shell_assignments.cpp).
  bool read_assignment();
  void read_here_document();
  void read_here_string();
  bool is_positional() const;

  // One word of the script, as many as it becomes (shell_words.cpp).
  std::vector<std::string> expand();
  void count_lines(std::size_t begin, std::size_t end);
  bool read_quoted(std::string& word, std::vector<std::string>& done);
  bool stands_alone(std::string_view word) const;
  bool is_list() const;
  static void split_into(const std::vector<std::string>& values, std::string& word,
                         std::vector<std::string>& done);
  std::vector<std::string> variable();
  std::vector<std::string> value_of_variable();

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;  ///< of the scripts that this one stands in
  std::size_t count_ = 0;
  ShellVariables variables_;
  ShellBranches branches_;
  std::vector<std::string> assigned_;
  std::vector<Word> words_;
  std::vector<Command> commands_;
};

}  // namespace shardplan::importing
