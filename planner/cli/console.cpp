#include "cli/console.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace shardplan::cli {
namespace {

Transcript*& of_this_thread() {
  thread_local Transcript* transcript = nullptr;
  return transcript;
}

void print(std::string_view text, std::FILE* file) {
  std::fwrite(text.data(), 1, text.size(), file);
}

}  // namespace

void print_answer(std::string_view text) {
  if (Transcript* kept = of_this_thread())
    kept->answer += text;
  else
    print(text, stdout);
}

void print_remark(std::string_view text) {
  if (Transcript* kept = of_this_thread())
    kept->remarks += text;
  else
    print(text, stderr);
}

bool is_watched() {
  return of_this_thread() == nullptr && isatty(STDERR_FILENO) == 1;
}

Transcript::Transcript() : outer_(std::exchange(of_this_thread(), this)) {}

Transcript::~Transcript() {
  of_this_thread() = outer_;
}

}  // namespace shardplan::cli
