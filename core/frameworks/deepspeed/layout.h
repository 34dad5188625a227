// How ZeRO lays out the trainable parameters over the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/model.h"

namespace shardplan {

/// Repetitions of a group, in forward order: [first, end).
struct LayerRange {
  std::int64_t first = 0, end = 0;
  bool contains(std::int64_t layer) const { return layer >= first && layer < end; }
};

/// Stages 1 and 2: all trainable tensors in a row, in registration order, padded at the end to a
/// multiple of 2N (stage_1_and_2.py: nccl_start_alignment_factor) and cut into N equal parts.
class FlatLayout {
 public:
  /// Of all trainable parameters.
  FlatLayout(const Model& model, std::int64_t ranks);
  /// Of those that `takes` names: others are in optimizer groups of their own.
  FlatLayout(const Model& model, std::int64_t ranks,
             const std::function<bool(const Parameter&)>& takes);

  std::int64_t padded() const { return padded_; }        ///< A
  std::int64_t partition() const { return partition_; }  ///< P = A / N

  /// F: the full numel of every tensor that touches the partition of `rank`.
  std::int64_t touched(std::int64_t rank) const;
  /// The largest piece of one tensor inside the partition of `rank`.
  std::int64_t largest_fragment(std::int64_t rank) const;
  /// The repetitions of parameter `id` that touch the partition of `rank`.
  LayerRange owned_layers(ParameterId id, std::int64_t rank) const;
  /// Whether the elements from `first` to before `end`, counted from the last one, are in several
  /// partitions: gradients come about in the reverse of the tensors' order.
  bool divides(std::int64_t first, std::int64_t end) const;
  /// The rank whose partition touches the most; ties go to the lowest. At most 64 ranks, evenly
  /// spread, are looked at.
  std::int64_t rank_with_most_touched() const;

 private:
  struct Group {
    std::int64_t begin = 0, size = 0, repeat = 1;  ///< elements
    std::int32_t first = 0, count = 0;
  };
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  Range tensor_at(std::int64_t element) const;

  const Model& model_;
  std::vector<Group> groups_;
  std::vector<std::int64_t> offset_;  ///< of a parameter inside its group; -1 when frozen
  std::vector<std::int32_t> group_of_;
  std::int64_t total_ = 0, padded_ = 0, partition_ = 0, ranks_ = 1;
};

/// Stage 3: every tensor alone is padded to a multiple of N (partition_parameters.py).
struct ShardLayout {
  std::int64_t trainable = 0;  ///< P: elements of one rank's trainable shards
  std::int64_t frozen = 0;
  std::int64_t largest = 0;  ///< the largest trainable shard
  std::int64_t experts = 0;  ///< of `trainable`, what fewer ranks divide
};
/// `expert_ranks`: those that divide experts, if not all do.
ShardLayout shard_layout(const Model& model, std::int64_t ranks, std::int64_t expert_ranks = 0);

/// Elements of one rank's optimizer sub-groups at stage 3, in their order: trainable shards that
/// `takes` wants are appended in registration order until a group has at least `limit` (stage3.py
/// _create_fp16_sub_groups).
std::vector<std::int64_t> sub_group_sizes(const Model& model, std::int64_t ranks,
                                          std::int64_t limit,
                                          const std::function<bool(const Parameter&)>& takes);

}  // namespace shardplan
