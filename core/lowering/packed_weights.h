// Weights in fewer bits as frameworks shard them. bitsandbytes packs a weight into a tensor of one
// column, whose elements have a type of the user's choice (bnb_4bit_quant_storage): that is what is
// cut, gathered and counted. The scales belong to no parameter, so that each rank has all of them
// (bitsandbytes 0.50.2, nn/modules.py, Params4bit and Linear4bit.forward).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/model.h"
#include "program/program.h"

namespace shardplan {

/// A network whose packed weights are tensors of `storage`, which has to be the type that
/// parameters are gathered in: a cast would change the bits. Without its segments, which a run has.
class PackedWeights {
 public:
  /// `model` has to outlive this where nothing in it is quantized.
  PackedWeights(const Model& model, DType storage);

  const Model& model() const { return packed_ ? *packed_ : whole_; }
  /// Appends what every rank keeps whole: scales, and scales of scales; a block each.
  void append_whole_parts(std::vector<Event>& list) const;

 private:
  const Model& whole_;
  std::optional<Model> packed_;
};

/// Of the published run of a divided base in 4 bits (70B on two GPUs, FSDP1: peft's guides;
/// docs/explanation/sharding.md) what it took over what is predicted, for upper bounds: 35.6 GB for
/// 32.2, and 19.6 for 14.9 with shards on the host. 1 where nothing is packed.
double most_over_packed(const Model& model, bool on_host);

}  // namespace shardplan
