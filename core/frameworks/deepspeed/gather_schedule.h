// What each layer gathers and lets go in the steps of stage 3: the coordinator's answers, with
// layers in a row that do the same put together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "frameworks/deepspeed/coordinator.h"

namespace shardplan {

struct ReleasedTensor {
  ParameterId id = kNone;
  bool for_backward = false;  ///< GatheredTensor::for_backward
  bool divides = false;       ///< its secondary shard is made
  friend bool operator==(const ReleasedTensor&, const ReleasedTensor&) = default;
};

/// A tensor that is used for the first time since a call has gathered it.
struct AwaitedTensor {
  ParameterId id = kNone;
  std::size_t bucket = 0;
};

/// What happens at a module's use, or when it is done.
struct ModuleGathers {
  std::span<const GatherAction> actions;
  std::size_t ahead = 0;  ///< where those begin that the module does not wait for
  std::span<const AwaitedTensor> awaited;
  std::span<const ReleasedTensor> gone;
};

class GatherSchedule {
 public:
  /// `first`: of the step's first micro-batch.
  GatherSchedule(const Stage3& z, const std::vector<ModuleEvent>& order, bool first);

  /// Of a pass, in its own order.
  const std::vector<SegmentRepeat>& repeats(bool backward) const {
    return passes_[backward].repeats;
  }
  /// Actions when the whole model is entered.
  std::span<const GatherAction> opening(bool backward) const { return passes_[backward].opening; }
  /// The number of repeat `k`'s first event.
  std::size_t begin(bool backward, std::size_t k) const { return passes_[backward].begins[k]; }
  ModuleGathers at(std::size_t event) const;
  GatherCall call(std::size_t bucket) const { return coordinator_.call(bucket); }
  /// What `gathers` waits for, by calls.
  std::vector<GatherSet> awaited_sets(const ModuleGathers& gathers) const;

 private:
  struct Pass {
    std::vector<SegmentRepeat> repeats;
    std::vector<std::size_t> begins;
    std::vector<GatherAction> opening;
  };
  /// Where an event's part of each list ends.
  struct Ends {
    std::size_t actions = 0, awaited = 0, gone = 0;
  };

  void run(const std::vector<ModuleEvent>& order);
  void use(const ModuleEvent& event);
  void release(const ModuleEvent& event);
  void put_together(const std::vector<ModuleEvent>& order, bool backward);
  /// Two calls gather the same, of tensors that are `layers` apart.
  bool alike(std::size_t bucket, std::size_t other, std::int64_t layers) const;
  /// Two layers do the same at each of their `count` events, which begin at `first` and `other`.
  bool alike(const ModuleEvent* events, std::size_t first, std::size_t other,
             std::size_t count) const;
  /// The first flush is in this iteration, counted as the backward pass runs.
  bool flushes(std::size_t segment, std::int64_t iteration) const;

  const Stage3& z_;
  bool first_;
  ParameterCoordinator coordinator_;
  std::vector<GatherAction> actions_;
  std::vector<AwaitedTensor> awaited_;
  std::vector<ReleasedTensor> gone_;
  std::vector<Ends> ends_;  ///< by event
  Pass passes_[2];
};

}  // namespace shardplan
