#include "load/record_host.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace shardplan {
namespace {

constexpr const char* kCall = "python_call_seconds";

std::optional<double> call_of(const Json& taken) {
  if (!taken.is_object() || !taken.contains(kCall) || !taken[kCall].is_number())
    return std::nullopt;
  const double seconds = taken[kCall].get<double>();
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

std::optional<double> median_of(const Json& samples) {
  std::vector<double> calls;
  for (const Json& sample : samples)
    if (const auto call = call_of(sample)) calls.push_back(*call);
  if (calls.empty()) return std::nullopt;
  const auto middle = calls.begin() + static_cast<std::ptrdiff_t>(calls.size() / 2);
  std::nth_element(calls.begin(), middle, calls.end());
  return *middle;
}

std::optional<double> of_rank(const Json& rank) {
  if (!rank.is_object()) return std::nullopt;
  const auto between = median_of(rank.value("host_samples", Json::array()));
  return between ? between : call_of(rank.value("host", Json::object()));
}

}  // namespace

std::optional<double> python_call_beside(const Json& record) {
  std::optional<double> slowest;
  for (const Json& rank : record.value("ranks", Json::array()))
    if (const auto call = of_rank(rank)) slowest = std::max(slowest.value_or(*call), *call);
  if (slowest) return slowest;
  const Json environment = record.value("environment", Json::object());
  return call_of(environment.value("machine", Json::object()));
}

}  // namespace shardplan
