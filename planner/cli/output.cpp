#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/printable.h"
#include "cli/terminal.h"
#include "cli/transcript.h"
#include "save/file.h"

namespace shardplan::cli {
namespace {

/// False with errno set when the descriptor did not take all of it.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// A caller within the process takes UTF-8, whatever the terminal has.
bool takes_utf8() {
  return Transcript::current() != nullptr || speaks_utf8();
}

std::string shown(std::string_view text) {
  const std::string safe = printable_lines(text);
  return takes_utf8() ? safe : in_ascii(safe);
}

}  // namespace

void Output::write_bytes(std::string_view bytes) const {
  if (!file.empty()) return write_file(file, bytes);
  if (Transcript* kept = Transcript::current()) {
    kept->answer += bytes;
    return;
  }
  if (!write_all(STDOUT_FILENO, bytes))
    throw OutputError(fmt::format("standard output: cannot be written: {}",
                                  std::generic_category().message(errno)));
}

void Output::write_text(std::string_view text) const {
  write_bytes(file.empty() ? shown(text) : std::string(text));
}

void Output::write_json(const Json& json, int indent) const {
  const bool ascii = file.empty() && !takes_utf8();
  write_bytes(json.dump(indent, ' ', ascii, Json::error_handler_t::replace) + "\n");
}

void tell(std::string_view text) {
  if (Transcript* kept = Transcript::current()) {
    kept->remarks += shown(text);
    return;
  }
  write_all(STDERR_FILENO, shown(text));
}

}  // namespace shardplan::cli
