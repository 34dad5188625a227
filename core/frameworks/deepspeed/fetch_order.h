// In which order a step uses its modules: what DeepSpeed's coordinator records in the first step.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/segments.h"

namespace shardplan {

/// A module uses its parameters in a pass, or is done with them.
struct ModuleEvent {
  ModuleId module = kNone;
  std::size_t segment = 0;
  std::int64_t layer = 0;  ///< which iteration of its segment
  bool release = false;
  bool backward = false;
  /// Uses. Modules without parameters of their own that are entered before it: its block, its
  /// attention.
  std::int32_t containers = 0;
  bool begins_pass = false;  ///< the whole model is entered before it, too
  bool begins_layer = false;
};

/// Layers `first` to `first + count` - 1 of a segment, which a shorter model does not have.
struct OmittedLayers {
  std::size_t segment = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;  ///< 0: none
};

struct LayerPlace {
  std::size_t segment = 0;
  std::int64_t layer = 0;  ///< which iteration of its segment
};

/// The layers of a pass in the order in which they run. Those behind the omitted ones follow in
/// number on those before.
std::vector<LayerPlace> layers_in_order(const ModelRun& run, const OmittedLayers& omitted,
                                        bool backward);

/// All of a forward pass, and of the backward pass behind it if there is one.
std::vector<ModuleEvent> fetch_order(const Model& model, const ModelRun& run,
                                     const OmittedLayers& omitted);

}  // namespace shardplan
