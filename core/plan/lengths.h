// How long the samples of a data set are, and what a loader makes of them.
#pragma once

#include <cstdint>
#include <vector>

namespace shardplan {

/// Lengths of samples as values of equal weight, in ascending order: a data set's own, or parts of
/// them.
struct SampleLengths {
  std::vector<double> values;
  double mean = 0;
  std::int64_t longest = 0;
};

/// Of a file: one length a sample. At most a few hundred values stand for them, the largest being
/// the data set's. `lengths` is not empty.
SampleLengths lengths_of_samples(std::vector<std::int64_t> lengths);

/// Of a summary: a lognormal distribution with that mean and 95th percentile, cut at the longest
/// and scaled back to the mean. Asks for mean <= p95 <= longest.
SampleLengths lengths_of_summary(double mean, double p95, std::int64_t longest);

/// No sample is longer than `limit` tokens: the tokenizer cuts it.
SampleLengths cut_lengths(SampleLengths lengths, std::int64_t limit);

/// The expected length of the longest of `draws` samples.
double expected_longest(const SampleLengths& lengths, double draws);

}  // namespace shardplan
