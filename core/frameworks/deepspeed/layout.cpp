#include "frameworks/deepspeed/layout.h"

#include <algorithm>
#include <numeric>

namespace shardplan {

FlatLayout::FlatLayout(const Model& model, std::int64_t ranks)
    : FlatLayout(model, ranks, [](const Parameter&) { return true; }) {}

FlatLayout::FlatLayout(const Model& model, std::int64_t ranks,
                       const std::function<bool(const Parameter&)>& takes)
    : model_(model),
      offset_(model.parameters.size(), -1),
      group_of_(model.parameters.size(), 0),
      ranks_(ranks) {
  for (const ParameterGroup& g : model.groups) {
    Group group{total_, 0, g.repeat, g.first, g.count};
    for (std::int32_t i = g.first; i < g.first + g.count; ++i) {
      const auto p = static_cast<std::size_t>(i);
      group_of_[p] = static_cast<std::int32_t>(groups_.size());
      if (!model.parameters[p].trainable || !takes(model.parameters[p])) continue;
      offset_[p] = group.size;
      group.size = checked_add(group.size, model.parameters[p].numel);
    }
    total_ = checked_add(total_, checked_mul(group.size, g.repeat));
    groups_.push_back(group);
  }
  padded_ = round_up(total_, 2 * ranks);
  partition_ = padded_ / ranks;
}

FlatLayout::Range FlatLayout::tensor_at(std::int64_t element) const {
  for (const Group& g : groups_) {
    if (g.size == 0 || element >= g.begin + g.size * g.repeat) continue;
    const std::int64_t layer = (element - g.begin) / g.size;
    const std::int64_t base = g.begin + layer * g.size;
    for (std::int32_t i = g.first; i < g.first + g.count; ++i) {
      const auto p = static_cast<std::size_t>(i);
      if (offset_[p] < 0) continue;
      const std::int64_t begin = base + offset_[p];
      const std::int64_t end = begin + model_.parameters[p].numel;
      if (element < end) return {begin, end};
    }
  }
  return {total_, total_};  // padding
}

std::int64_t FlatLayout::touched(std::int64_t rank) const {
  const std::int64_t begin = rank * partition_;
  const std::int64_t end = std::min(begin + partition_, total_);
  if (begin >= end) return 0;
  return tensor_at(end - 1).end - tensor_at(begin).begin;
}

std::int64_t FlatLayout::largest_fragment(std::int64_t rank) const {
  const std::int64_t begin = rank * partition_;
  const std::int64_t end = std::min(begin + partition_, total_);
  std::int64_t largest = 0;
  for (const Group& g : groups_) {
    if (g.size == 0) continue;
    // Whole repetitions look alike: the first, the last and one between cover every case.
    const std::int64_t first =
        std::clamp((begin - g.begin) / g.size, std::int64_t{0}, g.repeat - 1);
    const std::int64_t last =
        std::clamp((end - 1 - g.begin) / g.size, std::int64_t{0}, g.repeat - 1);
    for (const std::int64_t layer : {first, std::min(first + 1, last), last}) {
      for (std::int32_t i = g.first; i < g.first + g.count; ++i) {
        const auto p = static_cast<std::size_t>(i);
        if (offset_[p] < 0) continue;
        const std::int64_t at = g.begin + layer * g.size + offset_[p];
        const std::int64_t piece =
            std::min(end, at + model_.parameters[p].numel) - std::max(begin, at);
        largest = std::max(largest, piece);
      }
    }
  }
  return largest;
}

LayerRange FlatLayout::owned_layers(ParameterId id, std::int64_t rank) const {
  const auto p = static_cast<std::size_t>(id);
  if (offset_[p] < 0) return {};
  const Group& g = groups_[static_cast<std::size_t>(group_of_[p])];
  // Layer k lies at [k·size, k·size + numel) from here.
  const std::int64_t base = g.begin + offset_[p];
  const std::int64_t begin = rank * partition_ - base, end = begin + partition_;
  const std::int64_t before = begin - model_.parameters[p].numel;
  return {before < 0 ? 0 : before / g.size + 1,
          end <= 0 ? 0 : std::min(g.repeat, ceil_div(end, g.size))};
}

bool FlatLayout::divides(std::int64_t first, std::int64_t end) const {
  const auto rank_of = [&](std::int64_t from_end) {
    return std::max<std::int64_t>(total_ - 1 - from_end, 0) / partition_;
  };
  return rank_of(first) != rank_of(end - 1);
}

std::int64_t FlatLayout::rank_with_most_touched() const {
  constexpr std::int64_t kMostRanks = 64;
  const std::int64_t looked_at = std::min(ranks_, kMostRanks);
  std::int64_t best = 0, most = -1;
  for (std::int64_t i = 0; i < looked_at; ++i) {
    const std::int64_t rank = looked_at == 1 ? 0 : i * (ranks_ - 1) / (looked_at - 1);
    const std::int64_t f = touched(rank);
    if (f > most) {
      most = f;
      best = rank;
    }
  }
  return best;
}

ShardLayout shard_layout(const Model& model, std::int64_t ranks, std::int64_t expert_ranks) {
  ShardLayout layout;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    const bool apart = expert_ranks > 0 && p.kind == ParameterKind::expert;
    const std::int64_t shard = ceil_div(p.numel, apart ? expert_ranks : ranks);
    if (apart && p.trainable)
      layout.experts = checked_add(layout.experts, checked_mul(shard, repeat));
    std::int64_t& sum = p.trainable ? layout.trainable : layout.frozen;
    sum = checked_add(sum, checked_mul(shard, repeat));
    if (p.trainable) layout.largest = std::max(layout.largest, shard);
  });
  return layout;
}

std::vector<std::int64_t> sub_group_sizes(const Model& model, std::int64_t ranks,
                                          std::int64_t limit,
                                          const std::function<bool(const Parameter&)>& takes) {
  std::vector<std::int64_t> sizes;
  std::int64_t group = 0;
  for (const ParameterGroup& g : model.groups) {
    std::vector<std::int64_t> shards;  // of one repetition
    for (std::int32_t i = g.first; i < g.first + g.count; ++i) {
      const Parameter& p = model.parameters[static_cast<std::size_t>(i)];
      if (p.trainable && takes(p)) shards.push_back(ceil_div(p.numel, ranks));
    }
    const std::int64_t size = std::accumulate(shards.begin(), shards.end(), std::int64_t{0});
    for (std::int64_t layer = 0; layer < g.repeat; ++layer) {
      // Whole repetitions that cannot fill the group are taken at once.
      if (size > 0 && group + size < limit) {
        const std::int64_t fit = std::min((limit - 1 - group) / size, g.repeat - layer);
        group += fit * size;
        layer += fit;
        if (layer == g.repeat) break;
      }
      for (const std::int64_t shard : shards) {
        group += shard;
        if (group < limit) continue;
        sizes.push_back(group);
        group = 0;
      }
    }
  }
  if (group > 0) sizes.push_back(group);
  return sizes;
}

}  // namespace shardplan
