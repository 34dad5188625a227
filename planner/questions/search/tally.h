// Every candidate of a space is on the front or ruled out by one rule: the counts.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "questions/search/search.h"
#include "questions/search/space.h"

namespace shardplan {

/// Rules of bounds and estimates, in the order in which they are asked.
enum class RuledOutBy : std::uint8_t {
  refused,
  parameters,
  states,
  host_states,
  nvme_states,
  activations,
  compute_limit,
  cannot_win,
  gpu,
  host,
  nvme,
  limit,
  allocator,
  beaten,
  not_reached,
};
inline constexpr std::size_t kRuleCount = 15;
std::string_view sentence_of(RuledOutBy rule);

struct Tally {
  explicit Tally(const SearchSpace& space) : by_axis(no_counts(space)) {}

  RuleCounts by_axis;
  std::array<std::int64_t, kRuleCount> by_rule{};

  std::int64_t& of(RuledOutBy rule) { return by_rule[static_cast<std::size_t>(rule)]; }
  std::int64_t total() const;
  void add(const Tally& other);
  /// Only what ruled something out.
  std::vector<RuleCount> counts(const SearchSpace& space) const;
};

/// Throws InputError: rules of axes alone have ruled every candidate out. Names the pair.
[[noreturn]] void fail_empty(const SearchSpace& space, const Tally& tally);

}  // namespace shardplan
