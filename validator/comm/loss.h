// A rank that is lost to a run: which one, how, and what it was doing.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/roster.h"

namespace shardplan::validator {

/// What a rank does, as its own thread has it: a GPU may be behind.
enum class Activity : std::uint8_t { start, weights, forward, backward, step, save, report, record };
std::string_view name_of(Activity activity);  ///< "loading weights"
std::string_view word_of(Activity activity);  ///< "weights"

struct Whereabouts {
  Activity activity = Activity::start;
  std::int64_t step = 0;  ///< the first is 1; 0: before it
};

/// What a run ends of.
struct Loss {
  std::string text;  ///< for people
  Json report;       ///< "lost": the ranks; "how"; "ranks": what each was doing
};

using Instant = std::chrono::steady_clock::time_point;

/// What one process knows of another.
struct Watched {
  Instant heard;
  std::optional<Instant> ended;  ///< its connection broke
  std::optional<Instant> left;   ///< it said why it fails
  std::string why;
  bool suspects = false;  ///< it waits for others no longer
  int suspect = -1;       ///< rank of the run that it waited for; -1: it cannot tell
};

/// All that is known, and who is to blame for it. The first process hears all others, they hear the
/// first alone.
struct Evidence {
  Roster roster;
  std::vector<Watched> members;       ///< as in the roster; its own never ends
  std::vector<Whereabouts> ranks;     ///< of the run
  std::chrono::milliseconds silence;  ///< of a process that counts as lost
  std::optional<Instant> suspected;   ///< since when somebody suspects

  /// None: all is well, or who is to blame may still turn out.
  std::optional<Loss> judge(Instant now) const;
  /// The process of `rank` is to blame (-1: none can be named).
  Loss blame(int rank, const std::string& how) const;

 private:
  bool watched(std::size_t member) const;
  bool silent(std::size_t member, Instant at) const;
  std::optional<Instant> due(Instant now) const;
  std::vector<std::size_t> to_blame() const;
  Loss loss_of(const std::vector<std::size_t>& blamed, const std::string& how, Instant now) const;
};

}  // namespace shardplan::validator
