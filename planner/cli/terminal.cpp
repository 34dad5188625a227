#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "base/ascii.h"
#include "cli/output.h"
#include "cli/transcript.h"
#include "render/text_width.h"

namespace shardplan::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

/// "de_DE.UTF-8@euro" -> "UTF-8"; "" where it names none.
std::string_view character_set(std::string_view locale) {
  const std::size_t dot = locale.find('.');
  if (dot == std::string_view::npos) return {};
  locale.remove_prefix(dot + 1);
  return locale.substr(0, locale.find('@'));
}

bool is_utf8(std::string_view locale) {
  if (locale.empty()) return true;
  const std::string set = lower(character_set(locale));
  return set == "utf-8" || set == "utf8";
}

}  // namespace

bool speaks_utf8() {
  if (Transcript::current() != nullptr) return true;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const std::string_view locale = variable(name); !locale.empty()) return is_utf8(locale);
  return true;
}

std::size_t terminal_columns() {
  winsize size{};
  const bool told = Transcript::current() == nullptr && ::isatty(STDOUT_FILENO) == 1 &&
                    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return told ? size.ws_col : TextWidth::kUsual;
}

bool confirmed(std::string_view question) {
  if (Transcript::current() != nullptr) return false;
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) return false;
  tell(fmt::format("{} [y/N] ", question));
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

ProgressLine::ProgressLine()
    : visible_(Transcript::current() == nullptr && ::isatty(STDERR_FILENO) == 1 &&
               variable("TERM") != "dumb") {}

ProgressLine::~ProgressLine() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void ProgressLine::show(std::string_view text) {
  if (!visible_) return;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace shardplan::cli
