// What blocks keep for the backward pass, in pinned memory of the host.
//
// Blocks take turns in two places on the device. What one keeps leaves while the next block runs
// forward, and comes back while the block after it runs backward. That of the last two blocks
// stays: nothing takes its place before it is read.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/runtime.h"

namespace shardplan::validator {

class HostActivations {
 public:
  static constexpr std::int64_t kPlaces = 2;

  /// `blocks` of a micro-batch, of which each keeps `bytes`. Allocates the host's part.
  HostActivations(Runtime& runtime, std::int64_t blocks, std::int64_t bytes);

  /// Where the blocks whose number leaves `place` over keep it, all of it in one piece; for a step.
  void lend(std::int64_t place, const Tensor& flat) { at(places_, place).flat = flat; }

  /// Before and after what makes a block's tensors has been enqueued, in the blocks' order.
  void begin_forward(std::int64_t block);
  void end_forward(std::int64_t block);
  /// The same of what reads them, from the last block to the first.
  void begin_backward(std::int64_t block);
  void end_backward(std::int64_t block);

 private:
  struct Place {
    Tensor flat;
    Event ready = 0;  ///< the compute stream has come to where it may be copied from or to
    Event moved = 0;  ///< the copy is done
  };
  bool stays(std::int64_t block) const { return block + kPlaces >= blocks_; }
  Place& place_of(std::int64_t block) { return at(places_, block % kPlaces); }

  Backend& device_;
  std::int64_t blocks_;
  std::vector<Tensor> homes_;  ///< by block, of those that leave
  std::vector<Place> places_;
};

}  // namespace shardplan::validator
