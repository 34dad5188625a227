// Stage 3's parameter coordinator in a step whose order it knows: what each use of a module
// gathers, waits for and gathers ahead, and what is let go behind it
// (deepspeed/runtime/zero/partitioned_param_coordinator.py: fetch_sub_module, release_sub_module).
#pragma once

#include <cstdint>
#include <vector>

#include "frameworks/deepspeed/fetch_order.h"
#include "frameworks/deepspeed/stage3_plan.h"

namespace shardplan {

/// A parameter of one layer, numbered as DeepSpeed numbers them: in the order of registration.
using TensorId = std::int32_t;

/// The tensors that a parameter is, one a layer of its segment.
class TensorTable {
 public:
  explicit TensorTable(const Model& model);
  TensorId of(ParameterId id, std::int64_t layer) const;
  ParameterId parameter(TensorId t) const { return parameter_[static_cast<std::size_t>(t)]; }
  std::int64_t layer(TensorId t) const { return layer_[static_cast<std::size_t>(t)]; }
  std::int32_t size() const { return static_cast<std::int32_t>(parameter_.size()); }

 private:
  struct Place {
    TensorId first = 0;
    std::int32_t step = 0;  ///< from a layer's to the next one's; 0: all layers have the same
  };
  std::vector<Place> place_;             ///< by parameter
  std::vector<ParameterId> parameter_;  ///< by tensor
  std::vector<std::int64_t> layer_;
};

/// What one call gathers.
struct GatherCall {
  GatherSet set;
  std::vector<bool> for_backward;  ///< by tensor: which pass uses it first
};

/// Tensors of one call: they arrive together, when a module waits for one of them.
struct GatherBucket {
  GatherCall call;
  std::vector<TensorId> tensors;
  std::int64_t awaited = 0;  ///< tensors that no module has waited for
  bool arrived = false;
};

struct GatherAction {
  enum class Kind : std::uint8_t {
    gather,  ///< the call
    arrive,  ///< a module waits: each tensor is there
    settle,  ///< modules have waited for all of its tensors: what they came in goes
  };
  Kind kind = Kind::gather;
  std::size_t bucket = 0;
};

class ParameterCoordinator {
 public:
  /// `order`: of a micro-batch. `first`: of the step's first micro-batch, which makes the secondary
  /// shards of trainable parameters.
  ParameterCoordinator(const Stage3& z, const std::vector<ModuleEvent>& order, bool first);

  /// The whole model is entered.
  std::vector<GatherAction> begin_pass();
  /// The next use of the order.
  std::vector<GatherAction> use();
  /// The module of a use lets its parameters go: those that do not stay for a later use.
  std::vector<TensorId> release(ModuleId id, std::int64_t layer);

  /// `tensors` by the calls that gather them.
  std::vector<GatherBucket> calls(std::vector<TensorId> tensors) const;
  /// The pass that a tensor was gathered for is the backward pass.
  bool for_backward(TensorId t) const {
    return uses_[static_cast<std::size_t>(state_[static_cast<std::size_t>(t)].wanted)].backward;
  }

  const GatherBucket& bucket(std::size_t i) const { return buckets_[i]; }
  const TensorTable& tensors() const { return tensors_; }
  /// The secondary shard of a tensor has been made.
  void divided(TensorId t) { divided_[static_cast<std::size_t>(t)] = true; }
  bool is_divided(TensorId t) const { return divided_[static_cast<std::size_t>(t)]; }
  /// A module's tensors that are not always there.
  std::vector<TensorId> tensors_of(ModuleId id, std::int64_t layer) const;

 private:
  enum class Status : std::uint8_t { away, in_flight, there };
  struct Tensor {
    Status status = Status::away;
    std::int32_t users = 0;       ///< modules that are at work with it
    std::int64_t looked_at = -1;  ///< the last use that the queue has given out
    std::int64_t wanted = 0;        ///< the use that it was gathered for
    std::size_t bucket = 0;
    std::vector<std::int64_t> uses;  ///< numbers of uses in the order
  };
  struct Queued {
    TensorId tensor = 0;
    std::int64_t use = 0;
  };

  Tensor& at(TensorId t) { return state_[static_cast<std::size_t>(t)]; }
  const Parameter& parameter(TensorId t) const;
  bool has_secondary(TensorId t) const;
  bool same_call(TensorId a, TensorId b) const;
  bool stays(TensorId t);
  /// The next tensor of the queue, with its use noted.
  TensorId take();
  void gather(std::vector<TensorId> tensors, std::vector<GatherAction>& actions);
  void wait_for(TensorId t, std::vector<GatherAction>& actions);
  void prefetch(std::vector<GatherAction>& actions);

  const Stage3& z_;
  bool first_;
  std::vector<ModuleEvent> uses_;
  TensorTable tensors_;
  std::vector<Tensor> state_;
  std::vector<bool> divided_;
  std::vector<GatherBucket> buckets_;
  std::vector<Queued> queue_;
  std::vector<std::int64_t> before_;  ///< elements of all modules before a use
  std::size_t head_ = 0;              ///< of the queue
  std::int64_t next_ = 0;             ///< use
  std::int64_t available_ = 0;        ///< elements that are there or in flight
};

}  // namespace shardplan
