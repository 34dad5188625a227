// Experts that ranks share out: their tensors are in optimizer groups of their own, at ZeRO stages
// 1 and 2 each divided over the ranks that have the same experts (deepspeed/moe/utils.py
// split_params_into_different_moe_groups_for_optimizer, runtime/zero/stage_1_and_2.py
// _configure_moe_settings). docs/explanation/parallelism.md, "Experts".
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Whether experts are in groups of their own: those of AutoEP and of DeepSpeed's own layers are.
bool separates_experts(const Plan& plan);
/// What is left in the optimizer group of all other parameters.
std::function<bool(const Parameter&)> outside_expert_groups(const Plan& plan);

class ExpertGroups {
 public:
  /// Of one rank's share of a model; none where they are not separated.
  ExpertGroups(const Model& model, const Plan& plan);

  bool exist() const { return !groups_.empty(); }
  /// Elements of each group, without padding.
  std::vector<std::int64_t> sizes() const;
  /// Bytes of the model's own experts, whole on every rank: AutoEP copies its part out of them, and
  /// the names that the engine noted for debugging keep them as long as it lives (engine.py
  /// __init__, utils/debug.py debug_extract_module_and_param_names).
  std::int64_t replaced_bytes(const Plan& plan, std::int64_t bytes_each) const;
  std::int64_t elements() const { return elements_; }
  /// Of all groups, each padded to a multiple of twice the ranks that share it.
  std::int64_t padded() const { return padded_; }
  std::int64_t partition() const { return padded_ / ranks_; }
  /// This rank's part of each group.
  std::vector<std::int64_t> partitions() const;
  /// The part of the largest group.
  std::int64_t largest_partition() const { return largest_; }
  /// Ranks with the same experts.
  std::int64_t ranks() const { return ranks_; }

  /// The full numel of every tensor that touches the part of `rank`, of all groups.
  std::int64_t touched(std::int64_t rank) const;
  /// The largest piece of one tensor inside it.
  std::int64_t largest_fragment(std::int64_t rank) const;

 private:
  template <typename Visit>
  void for_each_piece(std::int64_t rank, Visit&& visit) const;

  std::vector<std::vector<std::int64_t>> groups_;  ///< sizes of tensors, in order
  std::int64_t ranks_ = 1, degree_ = 1;
  std::int64_t elements_ = 0, padded_ = 0, largest_ = 0;
};

}  // namespace shardplan
