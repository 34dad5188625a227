// A feed-forward that runs over parts of the sequence, one after the other, in a function of
// autograd that keeps its input alone and computes each part again: TiledMLP of DeepSpeed
// (runtime/sequence_parallel/ulysses_sp.py), and those of axolotl and verl.
#pragma once

#include <cstdint>

namespace shardplan {

/// How the gradients of its weights come together, part by part.
enum class TileSums : std::uint8_t {
  /// As autograd adds them: the first part's is the gradient (DeepSpeed's function alone).
  autograd,
  /// The same, and the engine takes a gradient with the last part (ds_grad_is_ready).
  last_part,
  /// axolotl's: zeros beside, to which the gradients of each part are added when all are there.
  copies,
  /// verl's: zeros beside, in the type of the input, and hooks that add each gradient to them.
  hooks,
};

struct MlpTiles {
  std::int64_t count = 0;  ///< parts; 0: it runs as it is
  TileSums sums = TileSums::autograd;
  bool accumulates = false;  ///< gradients of earlier micro-batches are there
};

/// What becomes of such a function under a framework.
enum class TiledMlps : std::uint8_t {
  unknown,    ///< it is not estimated
  stops,      ///< PyTorch stops: each part's gradients would be reduced
  plain,      ///< gradients add up as in a step without a framework
  last_part,  ///< TileSums::last_part
  own_sums,   ///< parameters are given up after a part, unless the trainer's function knows
};

}  // namespace shardplan
