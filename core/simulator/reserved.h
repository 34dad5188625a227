// What a process holds of the GPU, and whether it runs out: programs on the caching allocator, from
// the built model to the steady state, every layer and every block.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/each.h"
#include "program/program.h"
#include "simulator/block_run.h"

namespace shardplan {

/// `pace`: absent: where blocks wait for streams, the host is ahead as far as it may (host_ahead).
ReservedProfile simulate_reserved(const Program& program, const AllocatorOptions& options = {},
                                  const Pace* pace = nullptr);

/// A program and, if its blocks wait for streams, how fast these get on.
struct PacedProgram {
  const Program* program = nullptr;
  Pace pace;
  bool has_neighbours = false;  ///< least() and most() are asked for
};

/// One program with memory to spare and with less. What the runs have in common is run once: they
/// part where the one with less must give cached segments back.
class ReservedRuns {
 public:
  const ReservedProfile& spare() const { return spare_; }
  /// The least and the most that the same blocks may have it hold: whether one of them finds a
  /// cached place hangs on a few bytes, and when one goes may be chance (Chance). Without
  /// neighbours and chances what it holds.
  std::int64_t least() const { return spare_.allocated + least_cached_; }
  std::int64_t most() const { return spare_.allocated + most_cached_; }
  /// With no more than `limit`, one of those that were asked for.
  ReservedProfile within(std::int64_t limit) const;

  /// Steps of several programs that build the same model, one after the other in this order: what
  /// is held over all of them counts where it is more.
  void add_steps(std::span<const PacedProgram> programs, std::span<const std::size_t> order,
                 std::span<const std::int64_t> limits);

 private:
  friend std::vector<ReservedRuns> reserved_runs(std::span<const PacedProgram> programs,
                                                 std::vector<std::int64_t> limits,
                                                 const ForEach& each);
  struct Scarce {
    std::int64_t limit = 0;
    BlockRun run;  ///< up to the first request beyond the limit
  };

  ReservedRuns(std::shared_ptr<const BlockScript> script, std::vector<std::int64_t> limits);
  void run_to(std::size_t row);
  void finish(const std::shared_ptr<const BlockScript>& script, bool has_neighbours);
  void try_neighbours(const std::shared_ptr<const BlockScript>& script);
  void try_chances(const std::shared_ptr<const BlockScript>& script);
  void note_cached(std::int64_t bytes);
  /// Of add_steps() with no more than a limit that they pass.
  struct ScarceSteps {
    std::int64_t limit = 0;
    ReservedProfile profile;
  };

  BlockRun run_;
  std::vector<std::int64_t> ahead_;  ///< limits that were not reached yet, the lowest last
  std::vector<Scarce> scarce_;
  std::vector<ScarceSteps> scarce_steps_;
  ReservedProfile spare_;
  std::int64_t least_cached_ = 0, most_cached_ = 0;  ///< beyond blocks, of it and its neighbours
};

/// Of programs that begin alike, such as those of a plan's ranks: the beginning is run once for
/// all, and what follows by `each`. `limits`: those that ReservedRuns::within() may be asked about.
std::vector<ReservedRuns> reserved_runs(std::span<const PacedProgram> programs,
                                        std::vector<std::int64_t> limits,
                                        const ForEach& each = in_turn);

}  // namespace shardplan
