#include "base/quantity.h"
#include "base/ascii.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace shardplan {
namespace {

struct Letters {
  std::string_view text;
  double factor;
};

constexpr double kKilo = 1e3, kKibi = 1024;

constexpr std::array kCounts{
    Letters{"", 1},          Letters{"k", 1e3},  Letters{"thousand", 1e3},  Letters{"m", 1e6},
    Letters{"million", 1e6}, Letters{"b", 1e9},  Letters{"g", 1e9},         Letters{"billion", 1e9},
    Letters{"bn", 1e9},      Letters{"t", 1e12}, Letters{"trillion", 1e12},
};
constexpr std::array kLengths{Letters{"", 1}, Letters{"k", kKibi}, Letters{"ki", kKibi},
                              Letters{"m", kKibi* kKibi}, Letters{"mi", kKibi* kKibi}};
constexpr std::array kBytes{
    Letters{"", 1},
    Letters{"b", 1},
    Letters{"k", kKilo},
    Letters{"kb", kKilo},
    Letters{"kib", kKibi},
    Letters{"m", kKilo* kKilo},
    Letters{"mb", kKilo* kKilo},
    Letters{"mib", kKibi* kKibi},
    Letters{"g", 1e9},
    Letters{"gb", 1e9},
    Letters{"gib", kKibi* kKibi* kKibi},
    Letters{"t", 1e12},
    Letters{"tb", 1e12},
    Letters{"tib", kKibi* kKibi* kKibi* kKibi},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <typename Table>
std::optional<double> factor_in(const Table& table, std::string_view letters) {
  for (const Letters& known : table)
    if (known.text == letters) return known.factor;
  return std::nullopt;
}

std::optional<double> factor_of(std::string_view letters, Magnitude magnitude) {
  switch (magnitude) {
    case Magnitude::length:
      return factor_in(kLengths, letters);
    case Magnitude::bytes:
      return factor_in(kBytes, letters);
    case Magnitude::count:
      break;
  }
  return factor_in(kCounts, letters);
}

bool is_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

/// Without '_' between digits, and without commas before groups of three.
std::string without_groups(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool inside = i > 0 && is_digit_at(text, i - 1) && is_digit_at(text, i + 1);
    const bool group =
        is_digit_at(text, i + 2) && is_digit_at(text, i + 3) && !is_digit_at(text, i + 4);
    if (inside && (text[i] == '_' || (text[i] == ',' && group))) continue;
    out += text[i];
  }
  return out;
}

std::string_view without_currency(std::string_view text) {
  for (const std::string_view sign : {"$", "€", "£", "¥"})
    if (text.starts_with(sign)) text.remove_prefix(sign.size());
  return trimmed(text);
}

}  // namespace

std::optional<double> parse_quantity(std::string_view text, Magnitude magnitude) {
  const std::string plain = without_groups(without_currency(trimmed(text)));
  double number = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  const std::string letters =
      lower(trimmed(std::string_view(plain).substr(static_cast<std::size_t>(end - plain.data()))));
  const std::optional<double> factor = factor_of(letters, magnitude);
  const double value = number * factor.value_or(NAN);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace shardplan
