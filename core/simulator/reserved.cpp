#include "simulator/reserved.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "base/each.h"

namespace shardplan {
namespace {

using Script = std::shared_ptr<const BlockScript>;

constexpr std::size_t kNoRow = BlockRun::StopBefore{}.row;

/// By how much requests of neighbours of a program are larger: 16 tokens of 1,024 are the most.
constexpr std::array<double, 4> kShifts{0.002, -0.002, 0.016, -0.016};

std::int64_t cached(const ReservedProfile& profile) {
  return profile.reserved - profile.allocated;
}

Script script_of(const Program& program, const Pace& pace) {
  return std::make_shared<const BlockScript>(block_script(program, pace));
}

/// Where the first of the scripts that are not all alike parts from another one.
std::size_t parting(const std::vector<Script>& scripts) {
  std::size_t row = kNoRow;
  for (const Script& script : scripts)
    if (!alike(*script, *scripts.front()))
      row = std::min(row, first_difference(*script, *scripts.front()));
  return row;
}

/// For every script the first one that it is alike.
std::vector<std::size_t> first_alike(const std::vector<Script>& scripts) {
  std::vector<std::size_t> twins;
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    std::size_t twin = 0;
    while (twin < i && !alike(*scripts[twin], *scripts[i])) ++twin;
    twins.push_back(twin);
  }
  return twins;
}

}  // namespace

ReservedProfile simulate_reserved(const Program& program, const AllocatorOptions& options,
                                  const Pace* pace) {
  const Pace unknown = pace == nullptr && waits_for_streams(program) ? host_ahead(program) : Pace{};
  BlockRun run(script_of(program, pace == nullptr ? unknown : *pace), options);
  run.run({});
  return run.profile();
}

ReservedRuns::ReservedRuns(Script script, std::vector<std::int64_t> limits)
    : run_(std::move(script), {}), ahead_(std::move(limits)) {
  std::sort(ahead_.begin(), ahead_.end(), std::greater<>());
  ahead_.erase(std::unique(ahead_.begin(), ahead_.end()), ahead_.end());
}

/// Leaves a copy behind at every limit that it passes.
void ReservedRuns::run_to(std::size_t row) {
  const auto limit = [&] {
    return ahead_.empty() ? std::numeric_limits<std::int64_t>::max() : ahead_.back();
  };
  run_.set_limit(limit());
  while (run_.run({row, !ahead_.empty()}) == BlockRun::Stop::at_limit) {
    scarce_.push_back({limit(), run_});
    ahead_.pop_back();
    run_.set_limit(limit());
  }
}

void ReservedRuns::finish(const Script& script, bool has_neighbours) {
  run_.follow(script);
  for (Scarce& scarce : scarce_) scarce.run.follow(script);
  run_to(kNoRow);
  spare_ = run_.profile();
  least_cached_ = most_cached_ = cached(spare_);
  if (has_neighbours) try_neighbours(script);
  if (script->has_chances) try_chances(script);
}

void ReservedRuns::try_neighbours(const Script& script) {
  for (const double shift : kShifts) {
    BlockRun run(script, {}, shift);
    run.run({});
    note_cached(cached(run.profile()));
  }
}

void ReservedRuns::try_chances(const Script& script) {
  for (const Chance chance : {Chance::soonest, Chance::latest}) {
    BlockRun run(script, {}, 0, chance);
    run.run({});
    note_cached(run.profile().reserved - spare_.allocated);
  }
}

void ReservedRuns::note_cached(std::int64_t bytes) {
  least_cached_ = std::min(least_cached_, bytes);
  most_cached_ = std::max(most_cached_, bytes);
}

void ReservedRuns::add_steps(std::span<const PacedProgram> programs,
                             std::span<const std::size_t> order,
                             std::span<const std::int64_t> limits) {
  std::vector<Script> scripts;
  for (const PacedProgram& p : programs) scripts.push_back(script_of(*p.program, p.pace));
  const auto steps_within = [&](const AllocatorOptions& options) {
    BlockRun run(scripts[order.front()], options);
    for (const std::size_t i : order)
      if (!run.run_step(scripts[i])) break;
    return run.profile();
  };
  const std::int64_t reserved = steps_within({}).reserved;
  if (reserved <= spare_.reserved) return;
  spare_.reserved = reserved;
  note_cached(cached(spare_));
  for (const std::int64_t limit : limits)
    if (limit > 0 && limit < reserved)
      scarce_steps_.push_back({limit, steps_within({.limit = limit})});
}

ReservedProfile ReservedRuns::within(std::int64_t limit) const {
  for (const ScarceSteps& steps : scarce_steps_)
    if (steps.limit == limit) return steps.profile;
  const auto it = std::find_if(scarce_.begin(), scarce_.end(),
                               [&](const Scarce& s) { return s.limit == limit; });
  if (it == scarce_.end()) return spare_;
  BlockRun run = it->run;
  run.run({});
  return run.profile();
}

std::vector<ReservedRuns> reserved_runs(std::span<const PacedProgram> programs,
                                        std::vector<std::int64_t> limits, const ForEach& each) {
  std::vector<Script> scripts;
  for (const PacedProgram& p : programs) scripts.push_back(script_of(*p.program, p.pace));
  ReservedRuns common(scripts.front(), std::move(limits));
  common.run_to(parting(scripts));
  const std::vector<std::size_t> twins = first_alike(scripts);
  std::vector<ReservedRuns> all(scripts.size(), common);
  each(scripts.size(), [&](std::size_t i) {
    if (twins[i] == i) all[i].finish(scripts[i], programs[i].has_neighbours);
  });
  for (std::size_t i = 0; i < all.size(); ++i)
    if (twins[i] != i) all[i] = all[twins[i]];
  return all;
}

}  // namespace shardplan
