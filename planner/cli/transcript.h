// What a command prints, kept for a caller within the same process.
#pragma once

#include <string>

namespace shardplan::cli {

/// Takes what this thread would print to the terminal, while it lives. There is nobody to ask then,
/// and nobody who watches.
class Transcript {
 public:
  Transcript();
  ~Transcript();
  Transcript(const Transcript&) = delete;
  Transcript& operator=(const Transcript&) = delete;

  /// The innermost one of this thread, or nullptr: the terminal.
  static Transcript* current();

  std::string answer;   ///< standard output
  std::string remarks;  ///< standard error

 private:
  Transcript* outer_;
};

}  // namespace shardplan::cli
