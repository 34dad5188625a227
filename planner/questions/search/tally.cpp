#include "questions/search/tally.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"

namespace shardplan {

std::string_view sentence_of(RuledOutBy rule) {
  switch (rule) {
    case RuledOutBy::refused:
      return "the framework cannot divide this model so";
    case RuledOutBy::parameters:
      return "parameters alone exceed the GPU";
    case RuledOutBy::states:
      return "what stays between steps exceeds the GPU";
    case RuledOutBy::host_states:
      return "offloaded states exceed the host's memory";
    case RuledOutBy::nvme_states:
      return "offloaded states exceed the NVMe";
    case RuledOutBy::activations:
      return "states and activations exceed the GPU, whatever the buckets";
    case RuledOutBy::compute_limit:
      return "computation alone takes longer than the limits allow";
    case RuledOutBy::cannot_win:
      return "at their least time and memory still no better than a plan found";
    case RuledOutBy::gpu:
      return "estimated: live tensors exceed the GPU";
    case RuledOutBy::host:
      return "estimated: exceed the host's memory";
    case RuledOutBy::nvme:
      return "estimated: exceed the NVMe";
    case RuledOutBy::limit:
      return "estimated: slower or dearer than the limits allow";
    case RuledOutBy::allocator:
      return "simulated: the allocator's upper bound exceeds the GPU";
    case RuledOutBy::beaten:
      return "estimated: no better than another plan in time, memory and GPUs";
    case RuledOutBy::not_reached:
      return "not looked at: the search was interrupted";
  }
  return "";
}

std::int64_t Tally::total() const {
  std::int64_t sum = 0;
  for (const auto& axis : by_axis)
    for (const std::int64_t n : axis) sum += n;
  for (const std::int64_t n : by_rule) sum += n;
  return sum;
}

void Tally::add(const Tally& other) {
  for (std::size_t a = 0; a < by_axis.size(); ++a)
    for (std::size_t r = 0; r < by_axis[a].size(); ++r) by_axis[a][r] += other.by_axis[a][r];
  for (std::size_t r = 0; r < kRuleCount; ++r) by_rule[r] += other.by_rule[r];
}

std::vector<RuleCount> Tally::counts(const SearchSpace& space) const {
  std::vector<RuleCount> all;
  const auto add = [&](const std::string& sentence, std::int64_t count) {
    if (count == 0) return;
    const auto same = std::find_if(all.begin(), all.end(),  // several axes may ask the same
                                   [&](const RuleCount& c) { return c.sentence == sentence; });
    if (same == all.end())
      all.push_back({sentence, count});
    else
      same->count += count;
  };
  for (std::size_t a = 0; a < by_axis.size(); ++a)
    for (std::size_t r = 0; r < by_axis[a].size(); ++r)
      add(space.axes[a].rules[r].sentence, by_axis[a][r]);
  for (std::size_t r = 0; r < kRuleCount; ++r)
    if (by_rule[r] > 0)
      all.push_back({std::string(sentence_of(static_cast<RuledOutBy>(r))), by_rule[r]});
  return all;
}

void fail_empty(const SearchSpace& space, const Tally& tally) {
  // The last axis that lost candidates lost the last ones.
  std::size_t axis = 0, rule = 0;
  std::int64_t most = 0;
  for (std::size_t a = 0; a < tally.by_axis.size(); ++a) {
    for (std::size_t r = 0; r < tally.by_axis[a].size(); ++r) {
      if (tally.by_axis[a][r] == 0 || (axis == a && tally.by_axis[a][r] <= most)) continue;
      most = tally.by_axis[a][r];
      axis = a;
      rule = r;
    }
  }
  const AxisRule& worst = space.axes[axis].rules[rule];
  throw InputError(
      {.key = fmt::format("{} and {}", space.axes[axis].flag, worst.against),
       .message = say("contradict each other, and nothing is left to search: {} ({} of {} "
                      "candidates)",
                      worst.sentence, most, space.size()),
       .expected = "values that go together"});
}

}  // namespace shardplan
