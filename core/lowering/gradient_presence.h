// Which gradients exist already, so that a further one is added to them in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/graph.h"

namespace shardplan {

/// A parameter of repeated layers has one id: the first layer may have a run of its own
/// (SegmentRun::first), and what it makes is another layer's gradient, not a second one.
class GradientPresence {
 public:
  explicit GradientPresence(std::size_t parameters) : made_(parameters) {}

  void next_micro_batch() { ++micro_batch_; }
  void enter(std::size_t stretch) { stretch_ = stretch; }
  void begin_iterations() { ++iterations_; }

  /// Whether the gradient of `id` was there before this call.
  bool add(ParameterId id) {
    Made& made = made_[static_cast<std::size_t>(id)];
    const bool another_layer = made.micro_batch == micro_batch_ && made.stretch == stretch_ &&
                               made.iterations != iterations_;
    const bool there = made.micro_batch > 0 && !(another_layer && made.is_first);
    const bool is_first = made.micro_batch == 0 || (another_layer && made.is_first);
    made = {micro_batch_, stretch_, iterations_, is_first};
    return there;
  }

 private:
  struct Made {
    std::int64_t micro_batch = 0;  ///< counted from 1; 0: not there
    std::size_t stretch = 0;
    std::int64_t iterations = 0;
    bool is_first = false;  ///< made in this micro-batch, not added to
  };
  std::vector<Made> made_;
  std::int64_t micro_batch_ = 0;
  std::size_t stretch_ = 0;
  std::int64_t iterations_ = 0;
};

}  // namespace shardplan
