// What fully_shard divides, gathers and reduces at once: the parameters of one call.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/segments.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// The parameters of one fully_shard call: a block, or what is left for the root. Shards are cut
/// along dimension 0, padded to a multiple of the ranks. Bytes, all layers of a block apart.
struct Fsdp2Unit {
  std::int64_t ranks = 1;     ///< that divide it
  Group group = Group::data;  ///< what they are
  std::int64_t gathered = 0;  ///< what an all-gather leaves, of all ranks together
  std::int64_t cast = 0;      ///< shards of another type than that: cast before it
  /// Weights that are gathered in 8 bits: how many, the largest one's shard in elements, and bytes
  /// of all their shards in their own type.
  std::int32_t narrow_tensors = 0;
  std::int64_t widest_narrow = 0, narrow_shards = 0;
  std::int64_t shards = 0;            ///< of one rank, in their own types
  std::int64_t unsharded = 0;         ///< separate tensors, in the type that was gathered
  std::vector<std::int64_t> tensors;  ///< their bytes, one by one
  std::int64_t trained = 0;           ///< elements that have gradients, padded, of all ranks
  std::int64_t trained_bytes = 0;     ///< of their unsharded tensors, in the compute type
  std::int32_t trained_tensors = 0;   ///< how many
  ParameterId last_trained = kNone;   ///< of them, in the order of the call's modules
  bool reshards = true;               ///< its parameters go between the passes
  /// Nobody else has a part, and FSDP2 is not given it: gradients stay where they are made, and
  /// what is cast to the compute type is kept for the backward pass by autograd.
  bool apart = false;
  /// A block's experts under expert parallelism: a call of their own on the ranks that have the
  /// same ones. None or one.
  std::vector<Fsdp2Unit> experts;
};

/// How a plan shards a model: units by segment, and element sizes.
class Fsdp2Units {
 public:
  /// `model`: as it is sharded (lowering/packed_weights.h); the segments are those of `run`.
  Fsdp2Units(const Model& model, const Plan& plan, const ModelRun& run,
             Fsdp2Wrap wrap = Fsdp2Wrap::blocks);

  bool is_block(std::size_t segment) const { return is_block_[segment]; }
  /// The unit that a segment's parameters are; null: the root.
  const Fsdp2Unit* of(std::size_t segment) const {
    return units_[segment].tensors.empty() ? nullptr : &units_[segment];
  }
  const Fsdp2Unit& root() const { return root_; }
  /// Of a parameter's shard: packed weights have the compute type, adapters are fp32 as peft makes
  /// them.
  DType type_of(const Parameter& p) const;
  /// Of the shards that train, which have one type (foreach_reduce).
  DType trained_type() const { return trained_type_; }
  /// Whether expert parallelism puts it in a unit of its own.
  bool is_expert(ParameterId id) const;
  /// Whether its weight is gathered in the 8 bits in which it multiplies.
  bool is_narrow(const Parameter& p) const;
  /// The segment whose block it belongs to; kNone: of none.
  std::int32_t block_of(ParameterId id) const { return block_of_[static_cast<std::size_t>(id)]; }
  /// Elements that a rank holds of `p`, padding included.
  std::int64_t shard_of(const Parameter& p) const;

 private:
  Fsdp2Unit unit_on(std::int64_t ranks, Group group) const;
  Fsdp2Unit& experts_of(Fsdp2Unit& unit) const;
  void add(Fsdp2Unit& unit, ParameterId id) const;
  void add_segment(std::size_t segment, const ModelRun& run);
  bool is_frozen(const Segment& segment) const;
  ParameterId tied_table(const ModelRun& run) const;
  bool divides_ends(const ModelRun& run) const;

  const Model& model_;
  const Plan& plan_;
  std::int64_t ranks_, expert_ranks_;
  DType trained_type_;
  std::vector<bool> is_block_;
  std::vector<bool> taken_;             ///< by parameter: in a unit that is not the root
  std::vector<std::int32_t> block_of_;  ///< by parameter
  std::vector<Fsdp2Unit> units_;        ///< by segment; empty for segments of the root
  Fsdp2Unit root_;
};

}  // namespace shardplan
