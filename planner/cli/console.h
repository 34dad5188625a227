// Where a command's answer and its remarks go: the terminal, or a caller within the same process.
#pragma once

#include <string>
#include <string_view>

namespace shardplan::cli {

/// To standard output.
void print_answer(std::string_view text);

/// To standard error: what a person wants to know and a program that reads the answer does not.
void print_remark(std::string_view text);

/// Whether a person watches the remarks: a line that is written over itself makes sense.
bool is_watched();

/// Keeps what this thread prints while it lives, instead of printing it.
class Transcript {
 public:
  Transcript();
  ~Transcript();
  Transcript(const Transcript&) = delete;
  Transcript& operator=(const Transcript&) = delete;

  std::string answer, remarks;

 private:
  Transcript* outer_;
};

}  // namespace shardplan::cli
