// What a stage of the native engine's pipeline has of a network, and how many micro-batches are on
// their way in it (docs/explanation/validation.md).
#pragma once

#include <cstdint>

#include "frameworks/native/layout.h"
#include "plan/plan.h"

namespace shardplan {

struct NativeStage {
  std::int64_t index = 0;
  std::int64_t stages = 1;
  std::int64_t chunks = 1;  ///< of the stage
  std::int64_t slots =
      1;  ///< micro-batches in a chunk whose backward pass is still to come, at most

  bool first() const { return index == 0; }
  bool last() const { return index == stages - 1; }
  /// Whether the network begins, or ends, with a chunk of the stage.
  bool begins(std::int64_t chunk) const { return first() && chunk == 0; }
  bool ends(std::int64_t chunk) const { return last() && chunk == chunks - 1; }
};

NativeStage native_stage(const Plan& plan, std::int64_t rank);

/// `whole`: of a rank's share of all layers. Units that the stage does not have are none; a tied
/// table is on the first stage and, without positions, on the last.
NativeLayout layout_of_stage(const NativeLayout& whole, const NativeStage& stage);

}  // namespace shardplan
