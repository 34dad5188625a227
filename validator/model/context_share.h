// Which rows of each sequence a rank has where ranks share sequences: of 2·ranks equal runs one
// from the front and one from the back, so that causal attention is as much work for each rank.
// Rank r has runs r and 2·ranks − 1 − r, as Megatron-LM and PyTorch divide them.
#pragma once

#include "device/operands.h"

namespace shardplan::validator {

/// Which of the ranks that share sequences.
struct ContextShare {
  int rank = 0, ranks = 1;

  /// Of the rank's rows; `sequence` is the whole one, of which 2·ranks are a factor if it is
  /// shared.
  RowPlaces places(std::int64_t sequence) const {
    if (ranks == 1) return {sequence, 0, sequence, 0};
    const std::int64_t run = sequence / (2 * ranks);
    return {2 * run, rank * run, run, 2 * (ranks - 1 - rank) * run};
  }
};

}  // namespace shardplan::validator
