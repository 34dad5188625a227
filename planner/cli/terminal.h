// What the terminal, or whatever stands in its place, can show.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardplan::cli {

/// Of the terminal that standard output is; where it is none, as many as texts usually have.
std::size_t terminal_columns();

/// False where the locale (LC_ALL, else LC_CTYPE, else LANG) names a character set that is not
/// UTF-8: "C" and "POSIX" have ASCII. A locale that says nothing, as in most containers, is taken
/// as UTF-8, and so is a caller within the same process (cli/transcript.h).
bool speaks_utf8();

/// Asks on standard error and reads the answer, where both ends are a terminal; else, and for
/// everything but "y" and "yes", false.
bool confirmed(std::string_view question);

/// One line on standard error, written over itself, which disappears with the object. Silent
/// where standard error is no terminal, or one that cannot erase (TERM=dumb).
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::string_view text);

 private:
  bool visible_;
  bool shown_ = false;
};

}  // namespace shardplan::cli
