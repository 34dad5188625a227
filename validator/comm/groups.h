// The groups of ranks that divide a model and its samples. Ranks that share each layer are next to
// each other, as core numbers them; ranks with other samples come after them.
#pragma once

#include <memory>

#include "device/backend.h"
#include "device/communicator.h"

namespace shardplan::validator {

class Groups {
 public:
  /// Every rank of `world` makes its own at the same time. `tensor` ranks share each layer; the
  /// world is a multiple of that.
  Groups(Backend& device, Communicator& world, int tensor);

  /// With other samples and the same parameters.
  Communicator& data() const { return *data_.used; }
  /// With the same samples and other parts of each layer.
  Communicator& tensor() const { return *tensor_.used; }
  /// What they take outside the arena beside the world's.
  std::int64_t overhead_bytes() const;

 private:
  /// The world itself where all are in one group.
  struct Group {
    std::unique_ptr<Communicator> own;
    Communicator* used = nullptr;
  };
  /// `count` ranks, each `stride` after the one before.
  static Group make(Backend& device, Communicator& world, int count, int stride);

  Group tensor_, data_;
};

}  // namespace shardplan::validator
