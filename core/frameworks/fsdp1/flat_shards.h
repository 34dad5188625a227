// FSDP1 at work over a model: sizes of its flat parameters in each type, and what gathering one and
// letting it go allocates (torch/distributed/fsdp/_flat_param.py of PyTorch 2.11).
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "frameworks/fsdp1/flat_units.h"
#include "lowering/segments.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

// Streams that allocate: _pre_unshard_stream, _unshard_stream and _post_backward_stream.
inline constexpr Stream kShardPool = Stream::staging;
inline constexpr Stream kUnshardPool = Stream::copy;
inline constexpr Stream kReductionPool = Stream::communication;

struct Fsdp1 {
  const Model& model;
  const Plan& plan;
  const ModelRun& run;
  const Fsdp1Options& options;
  FlatUnits units;
  std::int64_t c, r, o;  ///< bytes an element: compute, reduction, sharded original
  bool sharded;          ///< a world of one GPU is NO_SHARD (_init_utils.py)
  bool reshards;         ///< after the forward pass

  Fsdp1(const Model& model, const Plan& plan, const ModelRun& run);

  bool casts() const { return plan.precision.compute != plan.precision.params; }
  Group group() const { return plan.copies() > 1 ? Group::shard : Group::data; }
  static std::int64_t bytes(std::int64_t elements, std::int64_t each) {
    return round_up(checked_mul(elements, each), kAllocationUnit);
  }
  std::int64_t shard_bytes(const FlatUnit& u) const { return bytes(u.shard, o); }
  /// Of what a unit computes with while it is gathered; 0: its own parameters.
  std::int64_t gathered_bytes(const FlatUnit& u) const {
    return sharded || casts() ? bytes(u.gathered(), c) : 0;
  }
  /// A reduced gradient's element, as the optimizer finds it: cast for it where gradients stay
  /// low, and of NO_SHARD as it was reduced.
  std::int64_t kept() const;

  template <typename Bytes>
  std::int64_t of_all(Bytes&& bytes_of) const {
    std::int64_t sum = bytes_of(units.root);
    for (std::size_t s = 0; s < units.blocks.size(); ++s)
      sum += units.repeats[s] * bytes_of(units.blocks[s]);
    return sum;
  }
  std::int64_t largest_gathered() const;

  /// The shard goes to the GPU and is cast, and the flat parameter is gathered. NO_SHARD only
  /// casts.
  void unshard(ProgramBuilder& b, const FlatUnit& u) const;
  /// The kernels that were given until now still read what goes (_free_unsharded_flat_param).
  void release(ProgramBuilder& b, const FlatUnit& u) const;
};

}  // namespace shardplan
