#include "logs/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "logs/kinds.h"
#include "logs/lines.h"
#include "logs/unread_log.h"

namespace shardplan::logs {

/// Those whose lines others may hold too come last: HF Trainer tells a run's end under DeepSpeed,
/// which tells each step.
const std::vector<LogKind>& log_kinds() {
  static const std::vector<LogKind> kinds{kMegatron, kTorchtitan, kTrainerState, kDeepSpeed,
                                          kTrainerLines};
  return kinds;
}

StepSize step_size(const Plan& plan) {
  const Workload& w = plan.workload;
  StepSize size;
  size.samples =
      static_cast<double>(plan.samples_at_once()) * static_cast<double>(w.gradient_accumulation);
  size.tokens = size.samples * static_cast<double>(w.sequence_length);
  size.gpus = static_cast<double>(plan.cluster.world());
  return size;
}

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Without what starts a run.
RunLog summary(const LogKind& kind, const Logged& logged) {
  RunLog run{.kind = std::string(kind.name), .memory = logged.memory};
  if (logged.steps.empty()) {
    run.mean = logged.mean;
    if (run.mean) run.step_seconds = run.mean->seconds;
    return run;
  }
  const std::size_t first = std::min(kWarmUp, logged.steps.size() - 1);  // one has to do
  std::vector<double> seconds;
  for (std::size_t i = first; i < logged.steps.size(); ++i)
    seconds.push_back(logged.steps[i].seconds);
  run.entries = seconds.size();
  run.left_out = first;
  run.step_seconds = median(std::move(seconds));
  return run;
}

}  // namespace

std::string how_counted(const RunLog& run) {
  if (!run.mean)
    return fmt::format("median of {} entries, the first {} left out", run.entries, run.left_out);
  const std::string steps =
      run.mean->steps > 0 ? fmt::format("{} steps", run.mean->steps) : std::string("all steps");
  return fmt::format("mean of {}, {} the first ones", steps,
                     run.mean->with_first ? "with" : "without");
}

RunLog read_log(std::string_view text, const std::string& file, const StepSize& step) {
  const std::string plain = without_colours(text);
  for (const LogKind& kind : log_kinds()) {
    const RunLog run = summary(kind, kind.read(plain, step));
    if (run.step_seconds > 0) return run;
  }
  refuse_out_of_memory(plain, file);
  std::vector<std::string> looked_for;
  for (const LogKind& kind : log_kinds())
    looked_for.push_back(fmt::format("{} ({})", kind.lines_of, kind.name));
  const bool empty = plain.find_first_not_of(" \t\r\n") == std::string::npos;
  throw InputError({.file = file,
                    .message = empty ? "is empty" : "no step's time was found",
                    .expected = fmt::format("one of: {}", fmt::join(looked_for, "; "))});
}

}  // namespace shardplan::logs
