// In which order a step uses its modules: what DeepSpeed's coordinator records in the first step.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/segments.h"

namespace shardplan {

/// A module uses its parameters in a pass, or is done with them.
struct ModuleEvent {
  ModuleId module = kNone;
  std::int64_t layer = 0;  ///< which iteration of its segment
  bool release = false;
  bool backward = false;
  /// Uses. Modules without parameters of their own that are entered before it: its block, its
  /// attention.
  std::int32_t containers = 0;
  bool begins_pass = false;  ///< the whole model is entered before it, too
  std::size_t repeat = 0;    ///< of the pass, each of one iteration
};

/// The repeats of a pass, each of one iteration.
std::vector<SegmentRepeat> single_layers(const ModelRun& run, bool backward);

/// All of a forward pass and the backward pass behind it.
std::vector<ModuleEvent> fetch_order(const Model& model, const ModelRun& run);

}  // namespace shardplan
