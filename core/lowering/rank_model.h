// What one rank has of a network that tensor, sequence, context and expert parallelism divide, and
// the tapes of its passes. Pipeline stages are cut later, by the lowering.
#pragma once

#include <memory>

#include "lowering/segments.h"

namespace shardplan {

class RankModel {
 public:
  /// `whole` has to outlive this where the plan divides nothing.
  RankModel(const Model& whole, const Plan& plan);

  const Model& model() const { return share_ ? *share_ : *whole_; }
  const ModelRun& run() const { return run_; }

 private:
  const Model* whole_;
  std::unique_ptr<const Model> share_;  ///< absent: the whole network
  ModelRun run_;
};

}  // namespace shardplan
