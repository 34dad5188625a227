#include "hardware/cluster_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/diagnostic.h"
#include "base/nearest.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostMemoryGb = 10'000;

/// nullopt when the digits do not fit in 64 bits.
std::optional<std::int64_t> parse_digits(std::string_view digits) {
  std::int64_t value = 0;
  for (const char c : digits) {
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
        __builtin_add_overflow(value, std::int64_t{c - '0'}, &value))
      return std::nullopt;
  }
  return value;
}

std::int64_t parse_count(std::string_view text) {
  const std::string expected = fmt::format("a count from 1 to {}", kMostGpus);
  const bool negative = text.starts_with('-');
  const std::string_view digits = negative ? text.substr(1) : text;
  if (!all_digits(digits)) fail_cluster(fmt::format("'{}' is not a whole number", text), expected);
  if (negative) fail_cluster(fmt::format("the count {} is negative", text), expected);
  const auto value = parse_digits(digits);
  if (!value || *value > kMostGpus)
    fail_cluster(fmt::format("the count {} is too large", text), expected);
  if (*value == 0) fail_cluster("the count is zero", expected);
  return *value;
}

/// Looks like a number, well formed or not: what stands before an x is then meant as a count.
bool looks_like_count(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && is_digit(text.front()) &&
         text.find_first_not_of("0123456789.,e+-") == std::string_view::npos;
}

/// Throws for 8x-40GB, which is what is left of "8x$GPU-40GB" where nobody said which GPU.
void fail_nameless_memory(std::string_view shown, const ClusterText& parts) {
  const std::string name = normalized(parts.name);
  const auto memory = parse_memory_name(name);
  if (!memory || !memory->has_unit) return;
  std::string counts;
  for (const std::int64_t count : parts.counts) counts += fmt::format("{}x", count);
  fail_cluster(fmt::format("'{}' has a memory size behind a dash, and no GPU before it", shown),
               std::string(kClusterForms), fmt::format("{}{}GB", counts, memory->gb));
}

}  // namespace

void fail_cluster(std::string message, std::string expected, std::string nearest) {
  throw InputError({.key = "cluster",
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .nearest = std::move(nearest)});
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

std::string compact_name(std::string_view text) {
  constexpr std::string_view kTimes = "\u00d7";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.substr(i).starts_with(kTimes)) {
      out += 'x';
      i += kTimes.size() - 1;
    } else if (c == '*') {
      out += 'x';
    } else if (c != ' ' && c != '\t' && c != '_') {
      out += lower(c);
    }
  }
  return out;
}

ClusterText split_cluster_text(std::string_view shown) {
  const std::string text = compact_name(shown);
  std::string_view rest = text;
  bool dash = text.starts_with('-');  // right before the name
  ClusterText parts;
  for (;;) {
    const auto x = rest.find('x');
    if (x == std::string_view::npos) break;
    std::string_view count = rest.substr(0, x);
    while (count.size() > 1 && count.ends_with('-')) count.remove_suffix(1);
    if (!looks_like_count(count)) break;
    parts.counts.push_back(parse_count(count));
    rest.remove_prefix(x + 1);
    dash = false;
    const bool sign = rest.size() > 1 && rest.front() == '-' && is_digit(rest[1]) &&
                      rest.find('x') != std::string_view::npos;
    while (!sign && rest.starts_with('-')) {
      rest.remove_prefix(1);
      dash = true;
    }
  }
  if (rest.empty())
    fail_cluster(fmt::format("'{}' names no GPU", shown), std::string(kClusterForms));
  if (parts.counts.size() > 2) {
    fail_cluster(fmt::format("'{}' has {} counts", shown, parts.counts.size()),
                 "at most two: nodes x GPUs of a node x GPU");
  }
  parts.name = rest;
  if (dash) fail_nameless_memory(shown, parts);
  return parts;
}

std::optional<MemoryName> parse_memory_name(std::string_view name) {
  const std::string text = normalized(name);
  const auto end = text.find_first_not_of("0123456789");
  const std::string_view digits = std::string_view(text).substr(0, end);
  const std::string_view unit = end == std::string::npos ? "" : std::string_view(text).substr(end);
  const bool has_unit = !unit.empty();
  if (digits.empty() || (has_unit && unit != "gb" && unit != "g" && unit != "gib"))
    return std::nullopt;
  if (name.find('.') != std::string_view::npos) {
    fail_cluster(fmt::format("'{}' is not a whole number of GB", name),
                 "a whole number of GB, or an object with memory_bytes");
  }
  const auto value = parse_digits(digits);
  if (!value || *value < 1 || *value > kMostMemoryGb)
    fail_cluster(fmt::format("no GPU has {}", name),
                 fmt::format("from 1GB to {}GB", kMostMemoryGb));
  return MemoryName{.gb = *value, .has_unit = has_unit};
}

}  // namespace shardplan
