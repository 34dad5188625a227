// torchtitan's log. Format: MetricsProcessor.log() in torchtitan/components/metrics.py,
// pytorch/torchtitan at 00fbaaf:
//  step: 10  loss:  7.1029  grad_norm:  2.3491  memory: 38.21GiB(48.40%)  tps: 5,762  tflops: ...
// tps are tokens per second of one GPU, of the steps since the last line; memory is the most that
// the allocator reserved in them. Before 2025 the word was wps.
#include <algorithm>

#include "logs/kinds.h"
#include "logs/lines.h"

namespace shardplan::logs {
namespace {

Logged read_torchtitan(std::string_view text, const StepSize& step) {
  Logged log;
  for (const std::string_view line : lines_of(text)) {
    const auto number = number_after(line, "step:");
    if (!number || line.find("validate step:") != std::string_view::npos) continue;
    auto rate = number_after(line, "tps:");
    if (!rate) rate = number_after(line, "wps:");
    if (!rate || *rate <= 0) continue;
    log.steps.push_back({static_cast<std::int64_t>(*number), step.tokens / (*rate * step.gpus)});
    if (const auto gib = number_after(line, "memory:"))
      log.memory.reserved = std::max(log.memory.reserved.value_or(0),
                                     static_cast<std::int64_t>(*gib * 1024 * 1024 * 1024));
  }
  return log;
}

}  // namespace

const LogKind kTorchtitan{"a torchtitan log", "'step: N ... memory: NGiB ... tps: N'",
                          read_torchtitan};

}  // namespace shardplan::logs
