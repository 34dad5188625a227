#include "load/record_host.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

/// The mean: hosts change between two paces, and a median has one of them.
std::optional<double> mean_call(const Json& samples) {
  double sum = 0;
  for (const Json& sample : samples) sum += sample.value("python_call_seconds", 0.0);
  if (sum <= 0) return std::nullopt;
  return sum / static_cast<double>(samples.size());
}

}  // namespace

std::optional<double> python_call_between_steps(const Json& record) {
  std::optional<double> slowest;
  for (const Json& rank : record.value("ranks", Json::array()))
    if (const auto call = mean_call(rank.value("host_samples", Json::array())))
      slowest = std::max(slowest.value_or(*call), *call);
  return slowest;
}

}  // namespace shardplan
