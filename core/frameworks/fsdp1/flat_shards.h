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
  std::int64_t c, r;  ///< bytes an element: compute, reduction; a unit knows its shard's
  bool sharded;       ///< a world of one GPU is NO_SHARD (_init_utils.py)
  bool reshards;      ///< after the forward pass

  Fsdp1(const Model& model, const Plan& plan, const ModelRun& run);

  bool casts(const FlatUnit& u) const { return u.each != c; }
  Group group() const { return plan.copies() > 1 ? Group::shard : Group::data; }
  static std::int64_t bytes(std::int64_t elements, std::int64_t each) {
    return round_up(checked_mul(elements, each), kAllocationUnit);
  }
  std::int64_t shard_bytes(const FlatUnit& u) const { return bytes(u.shard, u.each); }
  /// Of what a unit computes with while it is gathered; 0: its own parameters.
  std::int64_t gathered_bytes(const FlatUnit& u) const {
    return sharded || casts(u) ? bytes(u.gathered(), c) : 0;
  }
  /// A reduced gradient's element, as the optimizer finds it: cast for it where gradients stay
  /// low, and of NO_SHARD as it was reduced.
  std::int64_t kept(const FlatUnit& u) const;

  /// Every unit, those inside of others too, with how often the model has it.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    const auto with_nested = [&](const FlatUnit& u, std::int64_t count) {
      visit(u, count);
      for (const FlatUnit& leaf : u.nested) visit(leaf, count);
    };
    with_nested(units.root, 1);
    for (std::size_t s = 0; s < units.blocks.size(); ++s)
      if (units.is_block(s)) with_nested(units.blocks[s], units.repeats[s]);
  }
  template <typename Bytes>
  std::int64_t of_all(Bytes&& bytes_of) const {
    std::int64_t sum = 0;
    for_each([&](const FlatUnit& u, std::int64_t count) { sum += count * bytes_of(u); });
    return sum;
  }
  template <typename Bytes>
  std::int64_t of_trained(Bytes&& bytes_of) const {
    return of_all([&](const FlatUnit& u) { return u.trains ? bytes_of(u) : 0; });
  }
  std::int64_t largest_gathered() const;

  /// The shard goes to the GPU and is cast, and the flat parameter is gathered. NO_SHARD only
  /// casts. Units inside are taken to be there as long as the block is, which is longer than
  /// their leaf runs and so no less.
  void unshard(ProgramBuilder& b, const FlatUnit& u) const;
  /// The kernels that were given until now still read what goes (_free_unsharded_flat_param).
  void release(ProgramBuilder& b, const FlatUnit& u) const;

 private:
  void gather(ProgramBuilder& b, const FlatUnit& u, bool limited) const;
  void let_go(ProgramBuilder& b, const FlatUnit& u) const;
};

/// Whether what trains under LoRA is wrapped on its own, as HF Trainer does: the only way where one
/// flat tensor could not have it beside the frozen weights (_validate_tensors_to_flatten).
bool wraps_adapters(const Plan& plan);

}  // namespace shardplan
