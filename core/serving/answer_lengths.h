// Answers that end by themselves: how long each of many is, and how many still run.
#pragma once

namespace shardplan {

/// Lengths are exponential, cut at `longest`: what the outputs of requests in production were found
/// to be (ServeGen, arXiv 2505.09999). An answer that runs has as much left as one that begins,
/// whatever it has said. Their mean is `mean` tokens.
class AnswerLengths {
 public:
  /// Above `mean` 0 and at least it, else all answers are of that length.
  AnswerLengths(double mean, double longest);

  double mean() const { return mean_; }
  /// Of `answers` that began together, those that still run after so many tokens.
  double running(double answers, double tokens) const;
  /// The mean of `running` from the token `from` to `to`.
  double running_between(double answers, double from, double to) const;
  /// Tokens that one has said which is under way, in the mean, where others follow those that end.
  double said() const;
  /// Tokens of the longest of so many, in the mean.
  double longest_of(double answers) const;
  /// What the longest of so many is in this share of all cases at most.
  double longest_below(double answers, double share) const;

 private:
  double mean_, longest_;
  double scale_ = 0;  ///< of the exponential, tokens; 0: all are equally long
};

}  // namespace shardplan
