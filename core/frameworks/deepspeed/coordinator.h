// Stage 3's parameter coordinator in a step whose order it knows: what each use of a module
// gathers, waits for and gathers ahead, and what is let go behind it
// (deepspeed/runtime/zero/partitioned_param_coordinator.py: fetch_sub_module, release_sub_module).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "frameworks/deepspeed/fetch_order.h"
#include "frameworks/deepspeed/secondary.h"
#include "frameworks/deepspeed/tensor_table.h"

namespace shardplan {

struct GatheredTensor {
  TensorId tensor = 0;
  bool for_backward = false;  ///< the pass that uses it first
};

/// What one call gathers.
struct GatherCall {
  GatherSet set;
  std::vector<bool> for_backward;  ///< by tensor of the set
};

struct GatherAction {
  enum class Kind : std::uint8_t {
    gather,  ///< the call
    arrive,  ///< a module waits for one of its tensors: all are there
    settle,  ///< modules have waited for all of its tensors: what they came in goes
  };
  Kind kind = Kind::gather;
  std::size_t bucket = 0;  ///< number of the call
};

class ParameterCoordinator {
 public:
  /// `order`: of a micro-batch or a pass, without the layers of `omitted`. `first`: of the step's
  /// first micro-batch, which makes the secondary shards of trainable parameters.
  ParameterCoordinator(const DividedModel& z, const std::vector<ModuleEvent>& order,
                       const OmittedLayers& omitted, bool first);

  /// The whole model is entered. `actions`: what happens is put behind them.
  void begin_pass(std::vector<GatherAction>& actions) { prefetch(actions); }
  /// The next use of the order.
  void use(std::vector<GatherAction>& actions);
  /// The module of a use lets its parameters go: those that do not stay for a later use. Valid
  /// until the next call.
  std::span<const TensorId> release(const ModuleEvent& event);

  /// A module's tensors that are not always there. Valid until the next call.
  std::span<const TensorId> tensors_of(const ModuleEvent& event);
  /// Whether the tensor was not used since a call has gathered it; from now on it was.
  bool take_fresh(TensorId t) { return std::exchange(at(t).fresh, false); }
  std::size_t bucket_of(TensorId t) { return at(t).bucket; }
  /// The pass that a tensor was gathered for is the backward pass.
  bool for_backward(TensorId t) { return at(t).for_backward; }
  /// The secondary shard of a tensor has been made.
  void divided(TensorId t) { at(t).divided = true; }
  bool is_divided(TensorId t) { return at(t).divided; }

  std::span<const GatheredTensor> tensors_in(std::size_t bucket) const;
  /// Fills `call` with what a call gathers.
  void describe(std::size_t bucket, GatherCall& call) const;
  /// `ids` of the tensors of one call.
  GatherSet set_of(std::size_t bucket, std::vector<ParameterId> ids) const;
  const TensorTable& tensors() const { return tensors_; }

  /// What the next uses go by, with layers of `segment` counted from `layer`, and uses and calls
  /// from the next ones: what is the same before two layers goes on in the same way.
  std::vector<std::int64_t> state(std::size_t segment, std::int64_t layer) const;
  /// The use that the queue was read for last; null: none.
  const ModuleEvent* read_for() const;

 private:
  enum class Status : std::uint8_t { away, in_flight, there };
  struct Tensor {
    Status status = Status::away;
    bool divided = false;
    bool fresh = false;
    bool for_backward = false;
    std::int32_t users = 0;       ///< modules that are at work with it
    std::int32_t looked_at = -1;  ///< the last use that the queue has given out
    std::int32_t next_use = -1;   ///< the first use that has not been; none: -1
    std::size_t bucket = 0;
  };
  struct Bucket {
    std::size_t end = 0;  ///< of its tensors in gathered_
    std::int64_t awaited = 0;
    bool arrived = false;
    bool stored = false, secondary = false;
  };
  struct Queued {
    TensorId tensor = 0;
    std::int32_t use = 0;
    std::int32_t again = -1;  ///< the tensor's use after this one
  };

  Tensor& at(TensorId t) { return state_[static_cast<std::size_t>(t)]; }
  const Parameter& parameter(TensorId t) const;
  bool has_secondary(TensorId t);
  bool same_call(TensorId a, TensorId b);
  bool stays(TensorId t);
  /// The next tensor of the queue, with its use noted.
  const Queued& take();
  /// Gathers `wanted_`, in one call or in several.
  void gather(std::vector<GatherAction>& actions);
  void wait_for(TensorId t, std::vector<GatherAction>& actions);
  void prefetch(std::vector<GatherAction>& actions);
  /// Appends the tensor, its layer as `state` counts it.
  void append_name(std::vector<std::int64_t>& state, TensorId t, std::size_t segment,
                   std::int64_t layer) const;

  DividedModel z_;
  bool first_;
  TensorTable tensors_;
  std::vector<std::vector<ParameterId>> gathered_of_;  ///< by module
  std::vector<std::size_t> segment_of_;                ///< by parameter, of its last use
  std::vector<Tensor> state_;
  std::vector<Bucket> buckets_;
  std::vector<GatheredTensor> gathered_;  ///< of all buckets
  std::vector<ModuleEvent> uses_;
  std::vector<std::int64_t> before_;  ///< elements of all modules before a use, omitted or not
  std::vector<Queued> queue_;
  std::vector<std::size_t> queued_;  ///< where a use's tensors begin in the queue
  std::vector<TensorId> wanted_, asked_, gone_;
  std::size_t head_ = 0;        ///< of the queue
  std::int32_t next_ = 0;       ///< use
  std::int64_t available_ = 0;  ///< elements that are there or in flight
};

}  // namespace shardplan
