// DeepSpeed's log, whoever's loop it is. Formats: deepspeed/utils/timer.py, deepspeedai/DeepSpeed
// at 038beb6. ThroughputTimer.stop(), every steps_per_print steps:
//  epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=25.02, CurrSamplesPerSec=25.70,
//  MemAllocated=4.32GB, MaxMemAllocated=38.49GB
// With "wall_clock_breakdown", of each step's micro-batches together:
//  time (ms) | fwd: 6567.66 | bwd: 17950.35 | bwd_inner: ... | bwd_allreduce: ... | step: 1139.29
// Samples are those of all GPUs; GB are GiB. Before 0.7.1 a line began "0/20, ".
#include <algorithm>

#include "logs/kinds.h"
#include "logs/lines.h"

namespace shardplan::logs {
namespace {

void take_rate(Logged& log, std::string_view line, const StepSize& step) {
  const auto rate = number_after(line, "CurrSamplesPerSec=");
  if (!rate || *rate <= 0) return;
  log.steps.push_back({static_cast<std::int64_t>(number_after(line, "global_step=").value_or(0)),
                       step.samples / *rate});
  if (const auto gib = number_after(line, "MaxMemAllocated="))
    log.memory.allocated = std::max(log.memory.allocated.value_or(0),
                                    static_cast<std::int64_t>(*gib * 1024 * 1024 * 1024));
}

/// The timers of whole steps; those of micro-batches are named fwd_microstep and so on.
void take_breakdown(std::vector<LoggedStep>& steps, std::string_view line) {
  const auto forward = number_after(line, "| fwd:"), backward = number_after(line, "| bwd:"),
             update = number_after(line, "| step:");
  if (forward && backward && update) steps.push_back({0, (*forward + *backward + *update) / 1e3});
}

Logged read_deepspeed(std::string_view text, const StepSize& step) {
  Logged log;
  std::vector<LoggedStep> broken_down;
  for (const std::string_view line : lines_of(text)) {
    take_rate(log, line, step);
    take_breakdown(broken_down, line);
  }
  // The rate is from one step's beginning to its end; timers leave out what lies between them.
  if (log.steps.empty()) log.steps = std::move(broken_down);
  return log;
}

}  // namespace

const LogKind kDeepSpeed{"a DeepSpeed log",
                         "'CurrSamplesPerSec=N' or 'time (ms) | fwd: N | bwd: N ... | step: N'",
                         read_deepspeed};

}  // namespace shardplan::logs
