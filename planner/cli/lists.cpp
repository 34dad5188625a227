#include "cli/lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "base/nearest.h"
#include "json/document.h"

namespace shardplan::cli {
namespace {

[[noreturn]] void fail(const std::string& flag, std::string message, std::string expected,
                       std::string near = "") {
  throw InputError({.file = "<command line>",
                    .key = flag,
                    .message = std::move(message),
                    .expected = std::move(expected),
                    .nearest = std::move(near)});
}

std::vector<std::string> split_some(const std::string& flag, std::string_view text) {
  std::vector<std::string> parts = split_list(text);
  if (parts.empty()) fail(flag, "the list is empty", "values with commas between");
  return parts;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::vector<std::int64_t> integer_list(const std::string& flag, std::string_view text,
                                       std::int64_t least) {
  constexpr double kLargest = 9e18;
  std::vector<std::int64_t> values;
  for (const std::string& part : split_some(flag, text)) {
    const Json value = Json::parse(part, nullptr, false);
    const double number = value.is_number() ? value.get<double>() : std::nan("");
    if (!(number >= static_cast<double>(least)) || number > kLargest ||
        number != std::floor(number))
      fail(flag, fmt::format("found '{}'", part), fmt::format("whole numbers from {} on", least));
    values.push_back(value.is_number_integer() ? value.get<std::int64_t>()
                                               : static_cast<std::int64_t>(number));
  }
  return values;
}

std::size_t choice_of(const std::string& flag, const std::string& name,
                      const std::vector<std::string>& allowed) {
  const auto it = std::find(allowed.begin(), allowed.end(), name);
  if (it == allowed.end())
    fail(flag, fmt::format("unknown value '{}'", name),
         fmt::format("one of {}", fmt::join(allowed, ", ")),
         nearest(name, std::span<const std::string>(allowed)));
  return static_cast<std::size_t>(it - allowed.begin());
}

CLI::Validator word_among(std::vector<std::string> words) {
  const std::string shown = fmt::format("{{{}}}", fmt::join(words, ","));
  return {[words = std::move(words)](const std::string& word) -> std::string {
            if (std::ranges::find(words, word) != words.end()) return "";
            return to_string({.message = fmt::format("unknown value '{}'", word),
                              .expected = fmt::format("one of {}", fmt::join(words, ", ")),
                              .nearest = nearest(word, std::span<const std::string>(words))});
          },
          shown};
}

std::vector<std::size_t> choice_list(const std::string& flag, std::string_view text,
                                     const std::vector<std::string>& allowed) {
  std::vector<std::size_t> places;
  for (const std::string& part : split_some(flag, text)) {
    const std::size_t place = choice_of(flag, part, allowed);
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  return places;
}

}  // namespace shardplan::cli
