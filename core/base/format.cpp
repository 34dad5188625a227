#include "base/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace shardplan {
namespace {

std::string three_figures(double x) {
  if (x >= 99.95) return fmt::format("{:.0f}", x);
  return x >= 9.995 ? fmt::format("{:.1f}", x) : fmt::format("{:.2f}", x);
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = std::abs(static_cast<double>(bytes));
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  const char* sign = bytes < 0 ? "-" : "";
  if (unit == 0) return fmt::format("{}{} B", sign, std::llround(value));
  return fmt::format("{}{} {}", sign, three_figures(value), kUnits[unit]);
}

std::string format_delta(std::int64_t bytes) {
  return (bytes > 0 ? "+" : "") + format_bytes(bytes);
}

std::string format_count(std::int64_t count) {
  const std::string digits = fmt::format("{}", count < 0 ? -count : count);
  std::string out = count < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string format_parameters(std::int64_t count) {
  const double n = static_cast<double>(count);
  if (n >= 9.995e11) return fmt::format("{} T", three_figures(n / 1e12));
  if (n >= 9.995e8) return fmt::format("{} B", three_figures(n / 1e9));
  if (n >= 9.995e5) return fmt::format("{} M", three_figures(n / 1e6));
  return format_count(count);
}

std::string format_seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{} s", three_figures(seconds));
  return fmt::format("{} ms", three_figures(seconds * 1e3));
}

}  // namespace shardplan
