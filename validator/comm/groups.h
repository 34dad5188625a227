// The groups of ranks that divide a model and its samples. Ranks that share each layer are next to
// each other, as core numbers them; after them come ranks with other rows of the same sequences,
// then those with other samples, and stages of layers are furthest apart.
#pragma once

#include <memory>

#include "device/backend.h"
#include "device/communicator.h"

namespace shardplan::validator {

/// Over how many ranks a model is divided.
struct ModelDegrees {
  int tensor = 1;          ///< ranks that share each layer
  int context = 1;         ///< ranks that share each sequence
  int stages = 1;          ///< of layers
  bool tied_ends = false;  ///< the first stage and the last have a table in common
  int experts = 1;  ///< ranks of a stage that divide the experts of each layer: each has rows
                    ///< of its own, those that share layers too, between the products
  bool sparse = false;  ///< layers have experts: on each of these ranks, where `experts` is 1
};

class Groups {
 public:
  /// Every rank of `world` makes its own at the same time, of which the degrees' product is a
  /// factor.
  Groups(Backend& device, Communicator& world, const ModelDegrees& degrees);

  /// With other samples, or other rows of the same ones, and the same parameters.
  Communicator& data() const { return *data_.used; }
  /// With the same samples and other parts of each layer.
  Communicator& tensor() const { return *tensor_.used; }
  /// With other rows of the same sequences: some of data().
  Communicator& context() const { return *context_.used; }
  /// With the same samples and other layers, in the order of the layers.
  Communicator& stages() const { return *stages_.used; }
  /// The first stage with the last, where they have a table in common; else this rank alone.
  Communicator& ends() const { return *ends_.used; }
  /// With other rows and other experts of each layer, next to each other: of tensor() and data().
  Communicator& experts() const { return *experts_.used; }
  /// With other rows and the same experts.
  Communicator& copies() const { return *copies_.used; }
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

  /// Ranks that are as far from the two ends of the pipeline.
  static Group pair_ends(Backend& device, Communicator& world, int stages);

  /// Those that share sequences: the data group itself where that is all of it.
  static Group make_context(Backend& device, Communicator& world, const ModelDegrees& degrees,
                            const Group& data);

  Group tensor_, data_, context_, stages_, ends_, experts_, copies_;
};

}  // namespace shardplan::validator
