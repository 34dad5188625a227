// In which order a step uses its modules: what DeepSpeed's coordinator records in the first step.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/segments.h"

namespace shardplan {

/// One use of a module by a pass.
struct ModuleUse {
  ModuleId module = kNone;
  std::int64_t layer = 0;  ///< which iteration of its segment
  /// Modules without parameters of their own that are entered before it: its block, its attention.
  std::int32_t containers = 0;
  bool begins_pass = false;  ///< the whole model is entered before it, too
};

/// Tells which iteration of a segment each repeat runs. All repeats are of one iteration.
class LayerCounter {
 public:
  LayerCounter(const ModelRun& run, const std::vector<SegmentRepeat>& repeats, bool backward)
      : run_(run), repeats_(repeats), backward_(backward), reached_(run.segments.size(), 0) {}

  /// The layer of repeat `k`, which comes after repeat k - 1.
  std::int64_t enter(std::size_t k);

 private:
  const ModelRun& run_;
  const std::vector<SegmentRepeat>& repeats_;
  bool backward_;
  std::vector<std::int64_t> reached_;
};

/// The repeats of the forward pass, each of one iteration; reversed, those of the backward pass.
std::vector<SegmentRepeat> single_layers(const ModelRun& run);

/// All uses by a forward pass and the backward pass behind it.
std::vector<ModuleUse> fetch_order(const Model& model, const ModelRun& run,
                                   const std::vector<SegmentRepeat>& forward,
                                   const std::vector<SegmentRepeat>& backward);

}  // namespace shardplan
