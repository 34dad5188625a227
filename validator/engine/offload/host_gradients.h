// The gradients that a rank owns, in pinned memory of the host.
#pragma once

#include <vector>

#include "engine/element_range.h"
#include "engine/gradients.h"
#include "engine/offload/offload.h"

namespace shardplan::validator {

class HostGradients final : public GradientSink {
 public:
  /// `sets`: how many steps' gradients exist at once. `adds`: whether micro-batches arrive one by
  /// one and are added up here.
  HostGradients(Runtime& runtime, const std::vector<Unit>& units, const Sharding& sharding,
                DType dtype, int sets, bool adds);

  void begin_step() override { set_ = (set_ + 1) % static_cast<int>(sets_.size()); }
  void take(int unit, const Tensor& shard, Event ready, bool adds) override;

  /// Waits for the step's gradients, and takes the sum of the squares of those that are counted, by
  /// unit.
  double squared_norm(const std::vector<std::vector<ElementRange>>& counted);
  /// Which set the step under way has, and a unit's gradient of a set.
  int set() const { return set_; }
  Tensor of(int set, int unit) const { return at(at(sets_, set).of_unit, unit); }

 private:
  struct Set {
    std::vector<Tensor> of_unit;
  };
  /// A bucket of a later micro-batch on its way to the sum.
  struct Landing {
    Tensor tensor, sum;  ///< sum: empty: nothing is on its way
    Event arrived = 0;
  };
  void settle(Landing& landing);
  Tensor of(int unit) const { return of(set_, unit); }

  Runtime& runtime_;
  const std::vector<Unit>& units_;
  std::vector<Set> sets_;
  int set_ = 0;
  std::vector<std::vector<Event>> arrived_;  ///< by unit and bucket
  std::vector<int> order_;                   ///< units as their gradients came in this step
  std::vector<Landing> landings_;
  std::size_t next_landing_ = 0;
};

}  // namespace shardplan::validator
