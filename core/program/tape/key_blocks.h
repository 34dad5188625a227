// Attention over keys and values of several ranks, one rank's block after the other, as PyTorch's
// context_parallel does it (torch/distributed/tensor/experimental/_context_parallel/_attention.py,
// _templated_ring_attention and its backward, of PyTorch 2.11). Op::key_blocks counts the blocks.
//
// The tensors are those of the rank that merges most: the last one, whose queries see half of every
// other block; the first ones merge half of their rows. docs/explanation/parallelism.md has the
// sums.
#pragma once

#include <vector>

#include "program/tape/parts.h"

namespace shardplan::tape {

/// Beside the result of `op`, which exists: what the forward pass makes and lets go of, and what is
/// sent. Its attention is launched by the caller.
void attend_blocks_forward(Parts& p, const Op& op);

/// What the backward pass of a block finds alive beside its own gradients; goes with release().
class BlocksBackward {
 public:
  BlocksBackward(Parts& p, const Op& op);
  /// After the attention's backward pass: the sums in the type of the inputs.
  void release();

 private:
  Parts& p_;
  std::vector<StorageId> alive_;
};

}  // namespace shardplan::tape
