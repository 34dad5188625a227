// Which branches of a shell script's "if" and "case" run, as far as the script itself tells.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shardplan::importing {

enum class Truth : std::uint8_t { no, yes, unknown };

/// What a command of "[" or "[[" comes to: = == != -eq -ne -gt -ge -lt -le -z -n, "!" and a text.
Truth truth_of_test(std::span<const std::string> words);

/// The branches around the command that is read. A condition that only a caller's shell can know
/// leaves its branch in, and the assignments there are guesses.
class ShellBranches {
 public:
  /// The first word of a command, when it is read. True where it is a keyword of "if" or "case"
  /// and not a part of the command.
  bool read_keyword(const std::string& word);
  /// The end of a command. `words` without the keyword; `known` where all their variables are.
  /// True where they are patterns of a "case".
  bool end_command(std::span<const std::string> words, bool known);
  /// What joins the next command of a condition: '&' or '|'.
  void join(char with);
  /// ")" after the patterns of a branch of "case".
  void end_pattern();
  /// ";;" after a branch of "case".
  void end_branch();

  /// Whether what stands here never runs.
  bool skipping() const { return !open_.empty() && open_.back().skip; }
  /// Whether what stands here may not run.
  bool guessing() const;
  /// Whether what a variable had before counts: a branch of a "case" over what only a caller knows
  /// is an exception to what is usual.
  bool keeps_values() const;

 private:
  struct Branch {
    bool outside_skips = false;
    bool taken = false;         ///< a branch before, or this one, runs for certain
    bool skip = false;          ///< this branch does not run
    bool guess = false;         ///< nobody knows whether this branch runs
    bool in_condition = false;  ///< between "if" and "then"
    bool first = true;          ///< no command of the condition was read
    char joined = '&';
    Truth condition = Truth::unknown;
    // Of "case".
    bool is_case = false;
    bool expects_pattern = false;  ///< after "in" and after ";;"
    bool known_subject = false;
    std::string subject;
    std::vector<std::string> patterns;
  };
  static void begin_condition(Branch& branch);
  static void begin_patterns(Branch& branch);

  std::vector<Branch> open_;
};

}  // namespace shardplan::importing
