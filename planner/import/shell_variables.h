// The variables of a shell script, and what is known of their values.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan::importing {

inline constexpr std::size_t kMostWords = 20'000;

bool is_name_char(char c);
/// Adds to a value or a word as long as it is no longer than a script's should be.
void append_text(std::string& word, std::string_view text);

class ShellVariables {
 public:
  using Words = std::vector<std::string>;

  Words& of(const std::string& name) { return values_[name]; }
  /// Its first word; nullptr where it has none.
  const std::string* first_word(const std::string& name) const;

  /// Only a caller's shell knows the value for certain.
  void guess(const std::string& name) { guessed_.insert(name); }
  void know(const std::string& name) { guessed_.erase(name); }
  /// Whether a value that only a caller's shell knows was asked for since the flag was set.
  bool met_unknown() const { return met_unknown_; }
  void set_met_unknown(bool met) { met_unknown_ = met; }

  /// NAME=( and NAME+=(, whose words follow; `kept`: whether the list counts.
  void begin_list(const std::string& name, bool adds, bool kept);
  void end_list() { in_list_ = false; }
  bool in_list() const { return in_list_; }
  Words& list() { return values_[list_]; }

  Words value_of(const std::string& name, bool all) const;
  /// What "${...}" stands for: NAME, NAME[@], NAME:-otherwise.
  Words braced(std::string_view inside, int depth) const;
  std::string replaced(std::string_view sum) const;

 private:
  std::map<std::string, Words> values_;
  std::set<std::string> guessed_;
  mutable bool met_unknown_ = false;
  bool in_list_ = false;
  std::string list_;
  Words before_;  ///< words of that list before it was assigned
};

}  // namespace shardplan::importing
