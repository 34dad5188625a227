#include "plan/lengths.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardplan {
namespace {

constexpr std::size_t kValues = 512;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Where the standard normal distribution reaches `share`, by bisection of its integral.
double normal_quantile(double share) {
  double low = -8, high = 8;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    const double below = std::erfc(-middle / std::sqrt(2.0)) / 2;
    (below < share ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// The spread of logarithms that puts the 95th percentile at `ratio` of the mean: the smaller root
/// of s²/2 - z s + ln(ratio) = 0; a ratio that none reaches takes the nearest.
double spread_of(double ratio) {
  const double z = normal_quantile(0.95);
  return z - std::sqrt(std::max(0.0, z * z - 2 * std::log(ratio)));
}

}  // namespace

SampleLengths lengths_of_samples(std::vector<std::int64_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  SampleLengths out;
  out.longest = lengths.back();
  const std::size_t count = lengths.size(), parts = std::min(kValues, count);
  double sum = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * count / parts, end = (part + 1) * count / parts;
    double inside = 0;
    for (std::size_t i = begin; i < end; ++i) inside += static_cast<double>(lengths[i]);
    sum += inside;
    out.values.push_back(inside / static_cast<double>(end - begin));
  }
  out.mean = sum / static_cast<double>(count);
  return out;
}

SampleLengths lengths_of_summary(double mean, double p95, std::int64_t longest) {
  SampleLengths out;
  out.mean = mean;
  out.longest = longest;
  const double spread = spread_of(p95 / mean);
  const double centre = std::log(mean) - spread * spread / 2;
  const auto most = static_cast<double>(longest);
  for (std::size_t i = 0; i < kValues; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / kValues;
    out.values.push_back(std::min(most, std::exp(centre + spread * normal_quantile(share))));
  }
  for (int round = 0; round < 4; ++round) {
    const double factor = mean / mean_of(out.values);
    for (double& value : out.values) value = std::min(most, value * factor);
  }
  return out;
}

SampleLengths cut_lengths(SampleLengths lengths, std::int64_t limit) {
  if (lengths.longest <= limit) return lengths;
  lengths.longest = limit;
  for (double& value : lengths.values) value = std::min(value, static_cast<double>(limit));
  lengths.mean = mean_of(lengths.values);
  return lengths;
}

double expected_longest(const SampleLengths& lengths, double draws) {
  const auto count = static_cast<double>(lengths.values.size());
  double sum = 0, below = 0;
  for (std::size_t i = 0; i < lengths.values.size(); ++i) {
    const double up_to = std::pow(static_cast<double>(i + 1) / count, draws);
    sum += lengths.values[i] * (up_to - below);
    below = up_to;
  }
  return sum;
}

}  // namespace shardplan
