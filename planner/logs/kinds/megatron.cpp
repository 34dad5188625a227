// Megatron-LM's log. Formats: training_log() in megatron/training/training.py and report_memory()
// in megatron/training/utils/common_utils.py, NVIDIA/Megatron-LM at 001b00c:
//  [2024-10-24 21:02:23] iteration       20/   40000 | consumed samples:         1280 | elapsed
//  time per iteration (ms): 826.6 | throughput per GPU (TFLOP/s/GPU): 23.5 | ...
// [Rank 0] (after 20 iterations) memory (MB) | allocated: 1550.40 | max allocated: 20561.49 | ...
// Each entry is the mean of --log-interval iterations; MB are MiB. NeMo and Megatron-DeepSpeed
// print the same.
#include <algorithm>

#include "logs/kinds.h"
#include "logs/lines.h"

namespace shardplan::logs {
namespace {

void take_most(std::optional<std::int64_t>& most, std::optional<double> mebibytes) {
  if (!mebibytes) return;
  const auto bytes = static_cast<std::int64_t>(*mebibytes * 1024 * 1024);
  most = std::max(most.value_or(0), bytes);
}

Logged read_megatron(std::string_view text, const StepSize&) {
  Logged log;
  for (const std::string_view line : lines_of(text)) {
    if (const auto ms = number_after(line, "elapsed time per iteration (ms):"))
      log.steps.push_back(
          {static_cast<std::int64_t>(number_after(line, "iteration ").value_or(0)), *ms / 1e3});
    if (line.find("memory (MB) |") == std::string_view::npos) continue;
    take_most(log.memory.allocated, number_after(line, "max allocated:"));
    take_most(log.memory.reserved, number_after(line, "max reserved:"));
  }
  return log;
}

}  // namespace

const LogKind kMegatron{"a Megatron-LM log", "'elapsed time per iteration (ms): N'", read_megatron};

}  // namespace shardplan::logs
