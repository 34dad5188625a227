#include "logs/lines.h"

#include <cmath>
#include <cstdlib>

namespace shardplan::logs {

std::string without_colours(std::string_view text) {
  constexpr char kEscape = '\x1b';
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kEscape || i + 1 >= text.size() || text[i + 1] != '[') {
      plain += text[i];
      continue;
    }
    i += 2;  // "[31m": parameters to the final letter
    while (i < text.size() && (text[i] < '@' || text[i] > '~') && text[i] != '\n') ++i;
  }
  return plain;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of("\r\n");
    if (end != 0) lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + key.size());
  while (!line.empty() && (line.front() == ' ' || line.front() == '\'' || line.front() == '"'))
    line.remove_prefix(1);
  std::string digits;
  for (const char c : line.substr(0, 40)) {
    if (c == ',' && !digits.empty()) continue;
    const bool exponent = (c == 'e' || c == 'E') && !digits.empty();
    const bool sign =
        (c == '-' || c == '+') && !digits.empty() && (digits.back() == 'e' || digits.back() == 'E');
    if ((c < '0' || c > '9') && c != '.' && !exponent && !sign) break;
    digits += c;
  }
  if (digits.empty() || digits.front() == 'e' || digits.front() == 'E') return std::nullopt;
  const double value = std::strtod(digits.c_str(), nullptr);
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace shardplan::logs
