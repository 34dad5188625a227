#include "load/record_host.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shardplan {
namespace {

/// The mean: hosts change between two paces, and a median has one of them.
std::optional<double> mean_block(const Json& samples) {
  double sum = 0;
  for (const Json& sample : samples)
    sum += sample.value("forward_seconds", 0.0) + sample.value("backward_seconds", 0.0);
  if (sum <= 0) return std::nullopt;
  return sum / static_cast<double>(samples.size());
}

}  // namespace

std::optional<double> block_between_steps(const Json& record) {
  std::optional<double> slowest;
  for (const Json& rank : record.value("ranks", Json::array()))
    if (const auto block = mean_block(rank.value("host_samples", Json::array())))
      slowest = std::max(slowest.value_or(*block), *block);
  return slowest;
}

}  // namespace shardplan
