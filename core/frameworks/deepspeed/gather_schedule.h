// What each layer gathers and lets go in the steps of stage 3: the coordinator's answers, with
// layers in a row that do the same put together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "frameworks/deepspeed/coordinator.h"
#include "frameworks/deepspeed/stage3_plan.h"

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
  /// `first`: of the step's first micro-batch. The coordinator runs without the layers of
  /// `omitted`, which are taken to do what those beside them do.
  GatherSchedule(const Stage3& z, const OmittedLayers& omitted, bool first);

  /// Layers beside the omitted ones do the same again and again, and look at nothing behind them:
  /// so would the omitted ones.
  bool steady() const;
  /// Of a pass, in its own order.
  const std::vector<SegmentRepeat>& repeats(bool backward) const {
    return passes_[backward].repeats;
  }
  /// Actions when the whole model is entered.
  std::span<const GatherAction> opening(bool backward) const { return passes_[backward].opening; }
  /// Of the passes without the omitted layers.
  const std::vector<ModuleEvent>& order() const { return order_; }
  /// The number of repeat `k`'s first event.
  std::size_t begin(bool backward, std::size_t k) const { return passes_[backward].begins[k]; }
  ModuleGathers at(std::size_t event) const;
  /// Fills `call` with what a call gathers.
  void describe(std::size_t bucket, GatherCall& call) const { coordinator_.describe(bucket, call); }
  /// What `gathers` waits for, by calls.
  std::vector<GatherSet> awaited_sets(const ModuleGathers& gathers) const;

 private:
  struct Pass {
    std::vector<SegmentRepeat> repeats;
    std::vector<std::size_t> begins;
    std::vector<GatherAction> opening;
    std::vector<std::vector<std::int64_t>> states;  ///< see `watch`
    bool stays_in_segment = false;                  ///< the queue does, until there
  };
  /// Where an event's part of each list ends.
  struct Ends {
    std::size_t actions = 0, awaited = 0, gone = 0;
  };

  void run();
  void use(const ModuleEvent& event);
  void release(const ModuleEvent& event);
  /// Notes the coordinator's state before the two layers beside the omitted ones and behind them.
  void watch(const ModuleEvent& event);
  void put_together(bool backward);
  /// The layer that the first flush is in becomes a repeat of its own.
  void set_flush_apart();
  /// Two calls gather the same, of tensors that are `layers` apart.
  bool alike(std::size_t bucket, std::size_t other, std::int64_t layers) const;
  /// Two layers do the same at each of their `count` events, which begin at `first` and `other`.
  bool alike(std::size_t first, std::size_t other, std::size_t count) const;

  const Stage3& z_;
  OmittedLayers omitted_;
  bool first_;
  std::vector<ModuleEvent> order_;
  ParameterCoordinator coordinator_;
  std::vector<GatherAction> actions_;
  std::vector<AwaitedTensor> awaited_;
  std::vector<ReleasedTensor> gone_;
  std::vector<Ends> ends_;  ///< by event
  Pass passes_[2];
};

/// Of deep models most layers are left out, where that says the same.
GatherSchedule gather_schedule(const Stage3& z, bool first);

}  // namespace shardplan
