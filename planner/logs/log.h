// What a training log says of one run: how long a step took, and how much memory it had.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace shardplan::logs {

/// An entry: one step, or the mean of several.
struct LoggedStep {
  std::int64_t number = 0;  ///< the log's own; 0: it gives none
  double seconds = 0;
};

/// Bytes of the GPU that had most. A log need not have any.
struct LoggedMemory {
  std::optional<std::int64_t> allocated;  ///< peak of live tensors
  std::optional<std::int64_t> reserved;   ///< peak of what the allocator took
};

/// Steps of which a log tells how long they took together.
struct MeanStep {
  double seconds = 0;       ///< of one
  std::int64_t steps = 0;   ///< 0: it does not say how many
  bool with_first = false;  ///< the first ones of the run are among them
};

/// What a log of one kind holds.
struct Logged {
  std::vector<LoggedStep> steps;  ///< in the log's order
  std::optional<MeanStep> mean;   ///< where it tells no single steps
  LoggedMemory memory;
};

/// What a job's logs count in: "CurrSamplesPerSec" alone says no step's time.
struct StepSize {
  double samples = 0;  ///< of all GPUs, all micro-batches of a step
  double tokens = 0;
  double gpus = 1;
};
StepSize step_size(const Plan& plan);

/// A kind of log, each in a file of its own below kinds/.
struct LogKind {
  std::string_view name;      ///< "a torchtitan log"
  std::string_view lines_of;  ///< what is looked for: "'step: N ... tps: N'"
  Logged (*read)(std::string_view text, const StepSize& step);
};
const std::vector<LogKind>& log_kinds();

/// What one log says of a step, as far as it can without a run's first steps.
struct RunLog {
  std::string kind;              ///< LogKind::name
  double step_seconds = 0;       ///< the median of the entries that count, or `mean`
  std::size_t entries = 0;       ///< that count
  std::size_t left_out = 0;      ///< first ones: compiling, allocating, tuning
  std::optional<MeanStep> mean;  ///< of a log without entries
  LoggedMemory memory;
};

/// "median of 12 entries, the first 2 left out".
std::string how_counted(const RunLog& run);

/// How many of the first entries of a log are left out where enough others follow.
inline constexpr std::size_t kWarmUp = 2;

/// Reads a log of whichever kind. Throws InputError, naming what was looked for, where no kind has
/// a step in it.
RunLog read_log(std::string_view text, const std::string& file, const StepSize& step);

}  // namespace shardplan::logs
