#include "load/lengths.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "options/limits.h"

namespace shardplan {
namespace {

constexpr const char* kKey = "lengths";
constexpr const char* kExpected =
    "{\"mean\": 900, \"p95\": 3100, \"max\": 8192}, \"900,3100,8192\", or a file with one length a "
    "line";

SampleLengths checked_summary(const ObjectReader& o, std::string_view key, double mean, double p95,
                              std::int64_t longest) {
  if (mean <= p95 && p95 <= static_cast<double>(longest))
    return lengths_of_summary(mean, p95, longest);
  o.fail(key, fmt::format("mean {}, p95 {}, max {}", mean, p95, longest),
         "mean <= p95 <= max, each at least 1");
}

SampleLengths read_summary(ObjectReader o) {
  const auto wanted = [&](const char* key) {
    const auto value = o.number(key, 1, static_cast<double>(kLargestCount));
    if (!value) o.missing(key, kExpected);
    return *value;
  };
  const double mean = wanted("mean"), p95 = wanted("p95");
  const auto longest = o.integer("max", 1, kLargestCount);
  if (!longest) o.missing("max", kExpected);
  o.finish();
  return checked_summary(o, "max", mean, p95, *longest);
}

/// "900,3100,8192"; nothing when it is no such list.
std::optional<std::array<double, 3>> three_numbers(std::string_view text) {
  std::array<double, 3> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t comma = text.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == out.size())) return std::nullopt;
    const std::string_view part = text.substr(0, comma);
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), out[i]);
    if (parsed.ec != std::errc() || parsed.ptr != part.data() + part.size() || out[i] < 1)
      return std::nullopt;
    if (comma != std::string_view::npos) text.remove_prefix(comma + 1);
  }
  return out;
}

SampleLengths read_file(const ObjectReader& workload, const std::string& path) {
  constexpr std::size_t kLargestFile = 200'000'000;
  const std::string text = read_text_file(path, kLargestFile);
  std::vector<std::int64_t> lengths;
  std::string_view rest = text;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    std::string_view row = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), row.size() + 1));
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty()) continue;
    std::int64_t length = 0;
    const auto parsed = std::from_chars(row.data(), row.data() + row.size(), length);
    if (parsed.ec != std::errc() || parsed.ptr != row.data() + row.size() || length < 1 ||
        length > kLargestCount)
      workload.fail(kKey, fmt::format("{}, line {}: found '{}'", path, line, row.substr(0, 40)),
                    "a number of tokens, at least 1");
    lengths.push_back(length);
  }
  if (lengths.empty()) workload.fail(kKey, fmt::format("{} has no lengths", path), kExpected);
  return lengths_of_samples(std::move(lengths));
}

}  // namespace

std::optional<SampleLengths> read_lengths(ObjectReader& workload, const std::string& directory) {
  const Json* said = workload.find(kKey);
  if (said == nullptr) return std::nullopt;
  if (said->is_object())
    return read_summary(ObjectReader(*said, workload.file(), workload.path_of(kKey)));
  if (!said->is_string()) workload.fail(kKey, "found " + describe(*said), kExpected);
  const auto text = said->get<std::string>();
  if (const auto numbers = three_numbers(text))
    return checked_summary(workload, kKey, (*numbers)[0], (*numbers)[1],
                           static_cast<std::int64_t>((*numbers)[2]));
  return read_file(workload, (std::filesystem::path(directory) / text).string());
}

}  // namespace shardplan
