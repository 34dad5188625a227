// hpZ's secondary shards: a second copy of the parameters, divided over fewer ranks, that is made
// when a parameter is released and lasts until the optimizer's step has outdated it
// (deepspeed/runtime/zero/partition_parameters.py _partition_param_sec, stage3.py
// invalidate_secondary_tensor). docs/explanation/sharding.md, "hpZ".
#pragma once

#include <vector>

#include "frameworks/deepspeed/gather.h"

namespace shardplan {

class SecondaryShards {
 public:
  SecondaryShards(const Model& model, const Plan& plan, const ModelRun& run,
                  const GatherPlan& gather);

  bool exist() const { return exist_; }
  bool on_host() const { return on_host_; }
  /// Of one parameter, as allocated; trainable ones come and go, frozen ones stay.
  std::int64_t bytes_of(ParameterId id) const;
  /// Of all trainable parameters, and of all frozen ones.
  std::int64_t trainable_bytes() const { return trainable_; }
  std::int64_t frozen_bytes() const { return frozen_; }
  /// Of the trainable ones that no module releases in a pass: they are when the step begins.
  std::int64_t late_bytes() const { return late_; }
  /// Whether releasing this parameter in a pass leaves a secondary shard behind.
  bool follows(ParameterId id) const { return in_passes_[static_cast<std::size_t>(id)]; }
  /// Blocks of the host, where parameters are offloaded: each shard is pinned alone.
  std::int64_t pinned_bytes() const { return pinned_; }

 private:
  const Model& model_;
  const GatherPlan& gather_;
  std::int64_t b_ = 2;
  bool exist_ = false, on_host_ = false, stores_quantized_ = false;
  std::vector<bool> in_passes_;
  std::int64_t trainable_ = 0, frozen_ = 0, late_ = 0, pinned_ = 0;
};

/// Parameters that stage 3 divides: which, by what options, and who gathers them.
struct DividedModel {
  const Model& model;
  const ZeroOptions& zero;
  const Engine& e;
  const GatherPlan& gather;
  const SecondaryShards& secondary;
};

/// Bytes of a frozen shard of `elements`, b bytes each or quantized, as allocated.
std::int64_t frozen_shard_bytes(std::int64_t elements, std::int64_t b, bool quantized);

}  // namespace shardplan
