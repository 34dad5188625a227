#include "serving/answer_lengths.h"

#include <algorithm>
#include <cmath>

namespace shardplan {
namespace {

/// The scale s of which a cut at L leaves the mean m: m = s (1 - e^(-L/s)). Between m, which it is
/// without a cut, and where nearly all answers are cut.
double scale_of(double mean, double longest) {
  constexpr double kNearlyAll = 0.99;
  if (mean >= kNearlyAll * longest) return 0;
  double low = mean, high = 64 * longest;
  for (int i = 0; i < 80; ++i) {
    const double scale = (low + high) / 2;
    (scale * -std::expm1(-longest / scale) < mean ? low : high) = scale;
  }
  return high;
}

/// Sum of 1/k up to n: what the longest of n exponentials is in scales, in the mean.
double harmonic(double n) {
  constexpr double kEuler = 0.5772156649;
  return n <= 1 ? 1 : std::log(n) + kEuler + 1 / (2 * n);
}

}  // namespace

AnswerLengths::AnswerLengths(double mean, double longest)
    : mean_(mean), longest_(std::max(mean, longest)), scale_(scale_of(mean, longest_)) {}

double AnswerLengths::running(double answers, double tokens) const {
  if (scale_ <= 0) return tokens < mean_ ? answers : 0;
  return tokens < longest_ ? answers * std::exp(-tokens / scale_) : 0;
}

double AnswerLengths::running_between(double answers, double from, double to) const {
  if (scale_ <= 0) return running(answers, from);
  return answers * scale_ * (std::exp(-from / scale_) - std::exp(-to / scale_)) / (to - from);
}

double AnswerLengths::said() const {
  if (scale_ <= 0) return mean_ / 2;
  const double uncut = std::exp(-longest_ / scale_);
  return scale_ * (scale_ - uncut * (scale_ + longest_)) / mean_;
}

double AnswerLengths::longest_of(double answers) const {
  return scale_ <= 0 ? mean_ : std::min(longest_, scale_ * harmonic(answers));
}

double AnswerLengths::longest_below(double answers, double share) const {
  if (scale_ <= 0) return mean_;
  return std::min(longest_, -scale_ * std::log(1 - std::pow(share, 1 / answers)));
}

}  // namespace shardplan
