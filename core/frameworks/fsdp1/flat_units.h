// The flat parameters of FSDP1: each wrapped module's tensors one after the other in one tensor,
// which ranks divide (torch/distributed/fsdp/_flat_param.py).
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/segments.h"
#include "model/model.h"

namespace shardplan {

/// One FlatParameter. Sizes are elements.
struct FlatUnit {
  std::vector<ParameterId> parameters;  ///< in registration order, tied ones once
  std::vector<std::int64_t> starts;     ///< of each, in the flat tensor
  std::vector<std::int64_t> padding;    ///< tensors between them and at the end
  std::int64_t numel = 0;               ///< with that padding
  std::int64_t shard = 0;               ///< of one rank, padded
  std::int64_t ranks = 1;
  std::int64_t each = 4;         ///< bytes an element while it is a shard
  bool trains = true;            ///< any tensor of it; else there is no gradient
  std::vector<FlatUnit> nested;  ///< of modules inside, wrapped on their own

  std::int64_t gathered() const { return shard * ranks; }
};

/// How tensors are laid out.
struct FlatLayoutOptions {
  std::int64_t ranks = 1;
  /// use_orig_params: every tensor begins at a multiple of so many elements (16 bytes of the type
  /// that is gathered), and the whole is a multiple of the ranks; 0: nothing is padded.
  std::int64_t aligned = 0;
  std::int64_t each = 4;  ///< bytes an element of a shard
  /// What trains is in units of its own, a tensor each, in fp32: peft's fsdp_auto_wrap_policy
  /// (peft 0.19, utils/other.py) wraps every leaf that trains, and accelerate casts their shards.
  bool trained_apart = false;
};

FlatUnit flat_unit(const Model& model, std::vector<ParameterId> parameters,
                   const FlatLayoutOptions& options);

/// A unit for each block and one, the root's, for everything else.
struct FlatUnits {
  FlatUnit root;
  std::vector<FlatUnit> blocks;       ///< by segment; without parameters for segments of the root
  std::vector<std::int64_t> repeats;  ///< of them; 0 for segments of the root

  bool is_block(std::size_t segment) const { return repeats[segment] > 0; }
};
FlatUnits flat_units(const Model& model, const ModelRun& run, const FlatLayoutOptions& options);

/// What rank 0's optimizer updates: its shard of each flat parameter, or, with `originals`, the
/// pieces of the trainable tensors in it. With counts of alike tensors beside them.
struct OptimizerTensors {
  std::vector<Parameter> tensors;
  std::vector<std::int64_t> counts;
};
OptimizerTensors optimizer_tensors(const Model& model, const FlatUnits& units, bool originals);

}  // namespace shardplan
