// AdamW over the part of each unit that this rank owns, with clipping by the global norm.
#pragma once

#include <optional>
#include <vector>

#include "engine/element_range.h"
#include "engine/gradients.h"
#include "engine/runtime.h"
#include "engine/schedule.h"
#include "engine/weights.h"

namespace shardplan::validator {

struct OptimizerOptions {
  std::optional<DType> master;  ///< type of a master copy of the parameters, if there is one
  DType states = DType::f32;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.01;
  double largest_norm = 1;  ///< 0: gradients are not clipped
  std::uint32_t seed = 0;
};

class Optimizer {
 public:
  Optimizer(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
            const Weights& weights, const OptimizerOptions& options);

  /// Copies the parameters into the masters: after they have been initialised.
  void begin(const Weights& weights);
  /// The gradients' squared norm, over all ranks, to `norm` [1].
  void measure(const Gradients& gradients, const Tensor& norm);
  /// One update with that norm; none if it is not finite. `step` counts from 1.
  void update(Weights& weights, const Gradients& gradients, const Tensor& norm,
              double inverse_scale, const Rate& rate, std::int64_t step);

 private:
  struct State {
    Tensor master, first_moment, second_moment;
  };

  std::vector<ElementRange> counted(const Unit& unit) const;

  Runtime& runtime_;
  const std::vector<Unit>& units_;
  Sharding sharding_;
  OptimizerOptions options_;
  std::vector<State> states_;
  std::vector<std::vector<ElementRange>> counted_;  ///< by unit, of what is owned
  Event reduced_ = 0;
};

}  // namespace shardplan::validator
