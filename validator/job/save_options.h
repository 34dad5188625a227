// Which checkpoints a run writes.
#pragma once

#include <cstdint>
#include <string>

namespace shardplan::validator {

struct SaveOptions {
  std::string folder;         ///< all ranks reach it; empty: nothing is saved
  std::int64_t every = 0;     ///< steps; 0: after the last one alone
  bool sharded = true;        ///< each rank's own part, to go on from
  bool whole = false;         ///< weights as Hugging Face names them
  bool whole_states = false;  ///< and masters and moments of each of them

  bool wanted() const { return !folder.empty(); }
  /// After `step` steps of `last`.
  bool due(std::int64_t step, std::int64_t last) const {
    return wanted() && (step == last || (every > 0 && step % every == 0));
  }
};

}  // namespace shardplan::validator
