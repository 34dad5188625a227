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

class StateStore;

/// An update whose gradients are there, and which is made beside the next step.
struct PendingUpdate {
  double squared_norm = 0;  ///< of the gradients, over all ranks
  double inverse_scale = 1;
  Rate rate;
  std::int64_t step = 1;
};

/// Of what a rank owns of a unit, on the device; empty where there is none.
struct UnitStates {
  Tensor master, first_moment, second_moment;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Copies the parameters to where they are updated: after they have been initialised.
  virtual void begin(Weights& weights) = 0;
  /// The gradients' squared norm, over all ranks, to `norm` [1].
  virtual void measure(Weights& weights, const Gradients& gradients, const Tensor& norm) = 0;
  /// One update with that norm; none if it is not finite. `step` counts from 1.
  virtual void update(Weights& weights, const Gradients& gradients, const Tensor& norm,
                      double inverse_scale, const Rate& rate, std::int64_t step) = 0;
  /// Makes what updates are not made yet.
  virtual void finish(Weights& weights) = 0;
  /// None where the host keeps them, and of frozen units.
  virtual UnitStates states(int) const { return {}; }
  /// Where the host keeps them; null: it keeps none.
  virtual StateStore* host_states() { return nullptr; }
  /// Until parameters and states are what they are when the steps so far are over.
  virtual void settle(Weights&) {}
  /// Beside that there may be one more update; its gradient of a unit. None: there is never one.
  virtual std::optional<PendingUpdate> pending() const { return std::nullopt; }
  virtual Tensor pending_gradient(int) const { return {}; }
  /// Parameters, states and pending gradients have been given their values, in place of begin().
  virtual void restored(Weights&, const std::optional<PendingUpdate>&) {}

 protected:
  Optimizer(Runtime& runtime, const Sharding& sharding, const OptimizerOptions& options)
      : runtime_(runtime),
        sharding_(sharding),
        options_(options),
        reduced_(runtime.device.new_event()) {}

  /// The operands that all units of a step have in common.
  AdamW operands(const Tensor& norm, double inverse_scale, const Rate& rate,
                 std::int64_t step) const;
  /// What this rank counts of a unit's gradients in their norm: ranges of what it owns.
  std::vector<ElementRange> counted(const Unit& unit) const;
  bool counts(const Unit& unit) const;
  bool experts_cross_layers() const;
  /// `norm` becomes its sum over the ranks that own parts, those that share layers and the stages.
  void reduce_norm(const Tensor& norm);

  Runtime& runtime_;
  Sharding sharding_;
  OptimizerOptions options_;

 private:
  Event reduced_;
};

/// States in the device's memory.
class DeviceOptimizer final : public Optimizer {
 public:
  DeviceOptimizer(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                  const Weights& weights, const OptimizerOptions& options);
  void begin(Weights& weights) override;
  void measure(Weights& weights, const Gradients& gradients, const Tensor& norm) override;
  void update(Weights& weights, const Gradients& gradients, const Tensor& norm,
              double inverse_scale, const Rate& rate, std::int64_t step) override;
  void finish(Weights&) override {}
  UnitStates states(int unit) const override { return at(states_, unit); }

 private:
  const std::vector<Unit>& units_;
  std::vector<UnitStates> states_;
  std::vector<std::vector<ElementRange>> counted_;  ///< by unit, of what is owned
};

}  // namespace shardplan::validator
