// Learning-rate schedules with DeepSpeed's names, parameters and formulas
// (runtime/lr_schedules.py); docs/explanation/validation.md gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

namespace shardplan::validator {

struct ConstantLr {
  double rate = 1e-4;
};

struct Warmup {
  double smallest = 0;        ///< warmup_min_lr
  double largest = 1e-3;      ///< warmup_max_lr
  std::int64_t steps = 1000;  ///< warmup_num_steps
  bool logarithmic = true;    ///< warmup_type: log or linear
};

struct WarmupLr {
  Warmup warmup;
};

struct WarmupDecayLr {
  Warmup warmup;
  std::int64_t total_steps = 1;
};

struct OneCycleLr {
  double smallest = 0, largest = 1e-3;  ///< cycle_min_lr, cycle_max_lr
  std::int64_t first_steps = 2000;      ///< cycle_first_step_size
  std::int64_t second_steps = 2000;     ///< cycle_second_step_size
  std::int64_t first_stairs = 0, second_stairs = 0;
  double decay_rate = 0;         ///< decay_lr_rate
  std::int64_t decay_steps = 0;  ///< decay_step_size
  bool cycle_momentum = true;
  double smallest_momentum = 0.8, largest_momentum = 0.9;
  double momentum_decay_rate = 0;
};

struct LrRangeTest {
  double smallest = 1e-3;  ///< lr_range_test_min_lr
  std::int64_t step_size = 2000;
  double step_rate = 1;
  bool staircase = false;
};

using Schedule = std::variant<ConstantLr, WarmupLr, WarmupDecayLr, OneCycleLr, LrRangeTest>;

struct Rate {
  double learning_rate = 0;
  /// β₁ and β₂, where the schedule cycles them.
  struct Momentum {
    double beta1 = 0.9, beta2 = 0.99;
  };
  std::optional<Momentum> momentum;
};

/// What the step after `taken` steps runs with.
Rate rate_of(const Schedule& schedule, std::int64_t taken);

}  // namespace shardplan::validator
