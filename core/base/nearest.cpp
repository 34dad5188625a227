#include "base/nearest.h"

#include <algorithm>
#include <cstddef>

#include "base/ascii.h"

namespace shardplan {
namespace {

/// Optimal string alignment distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string digits_of(std::string_view name) {
  std::string digits;
  for (const char c : name)
    if (is_digit(c)) digits += c;
  return digits;
}

/// Whether `name` is left of `whole` when letters are taken out of it.
bool shortens(std::string_view name, std::string_view whole) {
  for (const char c : whole)
    if (!name.empty() && name.front() == c) name.remove_prefix(1);
  return name.empty();
}

/// The shortest candidate that `name`, which has digits, is short for: "adamw8" for "adamw_8bit".
template <typename Strings>
std::string written_out(std::string_view name, const Strings& candidates) {
  constexpr std::size_t kShortest = 4;
  const std::string digits = digits_of(name);
  std::string_view best;
  if (digits.empty() || name.size() < kShortest) return {};
  for (const auto& candidate : candidates) {
    if (!best.empty() && candidate.size() >= best.size()) continue;
    if (digits_of(candidate) == digits && shortens(name, normalized(candidate))) best = candidate;
  }
  return std::string(best);
}

/// Of names equally near the one with the same first letter: B100 is rather B200 than V100.
template <typename Strings>
std::string nearest_of(std::string_view name, const Strings& candidates) {
  constexpr std::size_t kLongestName = 200;  // a longer one is no misspelling of a key
  if (name.size() > kLongestName) return {};
  const std::string wanted = normalized(name);
  std::string_view best;
  std::size_t best_distance = static_cast<std::size_t>(-1);
  for (const auto& candidate : candidates) {
    const std::string known = normalized(candidate);
    const std::size_t d = distance(wanted, known);
    const auto begins_alike = [&](std::string_view other) {
      return !wanted.empty() && !other.empty() && lower(other.front()) == wanted.front();
    };
    if (d < best_distance || (d == best_distance && begins_alike(known) && !begins_alike(best))) {
      best_distance = d;
      best = candidate;
    }
  }
  const std::size_t longest = std::max(wanted.size(), best.size());
  const bool is_near = best_distance * 3 <= longest;
  // Digits tell versions and bits apart: a name that has others is the second choice.
  if (!is_near || digits_of(best) != digits_of(wanted))
    if (std::string whole = written_out(wanted, candidates); !whole.empty()) return whole;
  return is_near ? std::string(best) : std::string();
}

bool parts_words(char c) {
  return c == '-' || c == '_' || c == '.' || c == ' ';
}

}  // namespace

std::string with_words(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kShortest = 4;  // shorter words are in too many names
  if (normalized(name).size() < kShortest) return {};
  std::string_view first, within;
  bool several = false;
  for (const std::string& candidate : candidates) {
    const std::size_t at = candidate.find(name);
    if (at == std::string::npos) continue;
    const std::size_t end = at + name.size();
    if ((at > 0 && !parts_words(candidate[at - 1])) ||
        (end < candidate.size() && !parts_words(candidate[end])))
      continue;
    if (at == 0 && (first.empty() || candidate.size() < first.size())) first = candidate;
    several = several || !within.empty();
    within = candidate;
  }
  if (!first.empty()) return std::string(first);
  return several ? std::string() : std::string(within);
}

std::string normalized(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '-' || c == '_' || c == '.' || c == ' ') continue;
    out += lower(c);
  }
  return out;
}

std::size_t spelling_distance(std::string_view a, std::string_view b) {
  return distance(normalized(a), normalized(b));
}

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  return nearest_of(name, candidates);
}

std::string nearest(std::string_view name, std::span<const std::string_view> candidates) {
  return nearest_of(name, candidates);
}

}  // namespace shardplan
