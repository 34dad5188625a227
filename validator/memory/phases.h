// The phases of a step in which memory is told apart, as docs/reference/job.md's estimate has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardplan::validator {

enum class Phase : std::uint8_t {
  model,     ///< everything that is kept for the run is allocated
  forward,   ///< the loss, and with it the gradient of the logits and the head, included
  backward,  ///< from the last block to the embedding, reductions included
  step,      ///< clipping and the optimizer
  save,      ///< a checkpoint is written; of runs that save
};
inline constexpr std::array<std::string_view, 5> kPhaseNames{"model", "forward", "backward", "step",
                                                             "save"};
inline constexpr std::size_t kPhaseCount = kPhaseNames.size();

}  // namespace shardplan::validator
