// Dynamic loss scaling for fp16, by DeepSpeed's rules (runtime/fp16/loss_scaler.py).
#pragma once

#include <cstdint>

namespace shardplan::validator {

struct LossScaling {
  bool dynamic = true;
  double initial = 65536;
  double smallest = 1;
  double factor = 2;
  std::int64_t window = 1000;   ///< steps without an overflow until the scale is raised
  std::int64_t hysteresis = 2;  ///< overflows that it takes to lower the scale
};

class LossScaler {
 public:
  explicit LossScaler(const LossScaling& options)
      : options_(options), scale_(options.initial), patience_(options.hysteresis) {}

  /// Where it has come to: part of a checkpoint.
  struct State {
    double scale = 1;
    std::int64_t patience = 1, step = 0, last_overflow = -1;
  };
  State state() const { return {scale_, patience_, step_, last_overflow_}; }
  void restore(const State& s) {
    scale_ = s.scale;
    patience_ = s.patience;
    step_ = s.step;
    last_overflow_ = s.last_overflow;
  }

  double scale() const { return scale_; }
  /// After a step. Throws Diverged when the smallest scale still overflows.
  void update(bool overflow);

 private:
  LossScaling options_;
  double scale_;
  std::int64_t patience_;
  std::int64_t step_ = 0;
  std::int64_t last_overflow_ = -1;
};

}  // namespace shardplan::validator
