// What one checkpoint of a run is: bytes on disk, and what a node writes and reads of them.
// docs/explanation/cost.md, "Checkpoints", has the table and the sources.
#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

struct SavedRun {
  Bytes weights, states;  ///< of all files; states with the optimizer's copies of the weights
  Bytes written_by_node;  ///< by the node that writes most
  Bytes read_by_node;     ///< a file that several of its ranks read comes from the disk once
  std::string_view files;

  Bytes total() const { return weights + states; }
};

/// Nothing where the framework writes none.
std::optional<SavedRun> saved_run(const Model& model, const Plan& plan);

}  // namespace shardplan
