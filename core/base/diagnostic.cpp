#include "base/diagnostic.h"

#include <fmt/format.h>

namespace shardplan {

std::string to_string(const Diagnostic& d) {
  std::string text;
  if (!d.file.empty()) text += d.file + ": ";
  if (d.position.known())
    text += fmt::format("line {}, column {}: ", d.position.line, d.position.column);
  if (!d.key.empty()) text += d.key + ": ";
  text += d.message;
  if (!d.expected.empty()) text += fmt::format("; expected {}", d.expected);
  if (!d.nearest.empty()) text += fmt::format("; did you mean '{}'?", d.nearest);
  return text;
}

}  // namespace shardplan
