#include "frameworks/deepspeed/expert_groups.h"

#include <algorithm>

#include <numeric>

#include "base/checked.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostElements = 178'956'971;  ///< max_group_size of moe/utils.py

std::int64_t padded_size(const std::vector<std::int64_t>& group, std::int64_t ranks) {
  std::int64_t sum = 0;
  for (const std::int64_t numel : group) sum = checked_add(sum, numel);
  return round_up(sum, 2 * ranks);
}

}  // namespace

bool separates_experts(const Plan& plan) {
  return plan.parallel.expert > 1 || plan.framework.deepspeed.moe;
}

std::function<bool(const Parameter&)> outside_expert_groups(const Plan& plan) {
  const bool separated = separates_experts(plan);
  return [separated](const Parameter& p) { return !separated || p.kind != ParameterKind::expert; };
}

std::vector<std::int64_t> ExpertGroups::sizes() const {
  std::vector<std::int64_t> sizes;
  for (const auto& group : groups_)
    sizes.push_back(std::accumulate(group.begin(), group.end(), std::int64_t{0}));
  return sizes;
}

std::vector<std::int64_t> ExpertGroups::partitions() const {
  std::vector<std::int64_t> parts;
  for (const auto& group : groups_) parts.push_back(padded_size(group, ranks_) / ranks_);
  return parts;
}

std::int64_t ExpertGroups::replaced_bytes(const Plan& plan, std::int64_t bytes_each) const {
  if (plan.framework.deepspeed.moe) return 0;
  return checked_mul(bytes_each * degree_, elements_);
}

ExpertGroups::ExpertGroups(const Model& model, const Plan& plan) : degree_(plan.parallel.expert) {
  if (!separates_experts(plan)) return;
  ranks_ = plan.replicas() / degree_;
  std::int64_t filled = 0;
  for (const ParameterGroup& group : model.groups)
    for (std::int64_t layer = 0; layer < group.repeat; ++layer)
      for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
        const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
        if (p.kind != ParameterKind::expert || !p.trainable) continue;
        elements_ = checked_add(elements_, p.numel);
        if (groups_.empty() || filled + p.numel > kMostElements) {
          groups_.emplace_back();
          filled = 0;
        }
        groups_.back().push_back(p.numel);
        filled += p.numel;
      }
  for (const auto& group : groups_) {
    const std::int64_t size = padded_size(group, ranks_);
    padded_ = checked_add(padded_, size);
    largest_ = std::max(largest_, size / ranks_);
  }
}

/// Calls visit(numel, piece) for each tensor that the part of `rank` has a piece of.
template <typename Visit>
void ExpertGroups::for_each_piece(std::int64_t rank, Visit&& visit) const {
  for (const auto& group : groups_) {
    const std::int64_t part = padded_size(group, ranks_) / ranks_;
    // Ranks with the same experts are `degree_` apart.
    const std::int64_t begin = rank / degree_ % ranks_ * part;
    std::int64_t at = 0;
    for (const std::int64_t numel : group) {
      const std::int64_t piece = std::min(begin + part, at + numel) - std::max(begin, at);
      if (piece > 0) visit(numel, piece);
      at += numel;
    }
  }
}

std::int64_t ExpertGroups::touched(std::int64_t rank) const {
  std::int64_t sum = 0;
  for_each_piece(rank, [&](std::int64_t numel, std::int64_t) { sum += numel; });
  return sum;
}

std::int64_t ExpertGroups::largest_fragment(std::int64_t rank) const {
  std::int64_t largest = 0;
  for_each_piece(rank,
                 [&](std::int64_t, std::int64_t piece) { largest = std::max(largest, piece); });
  return largest;
}

}  // namespace shardplan
