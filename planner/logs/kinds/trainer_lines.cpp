// What HF Trainer prints. Formats: speed_metrics() in src/transformers/trainer_utils.py and
// ProgressCallback in src/transformers/trainer_callback.py, huggingface/transformers at c599e98:
//   5%|▌         | 10/200 [00:11<03:30,  1.11s/it]
//  {'train_runtime': 225.8005, 'train_samples_per_second': 3.543, 'train_steps_per_second': 0.886,
//  ...}
// Newer versions put the numbers in quotes. The runtime counts the first steps and what is saved;
// tqdm's bar tells whole seconds since the run began, so that two of its states far enough apart
// tell the steps between them.
#include <charconv>

#include "logs/kinds.h"
#include "logs/lines.h"

namespace shardplan::logs {
namespace {

/// "10/200 [00:11<": a state of the bar.
struct Progress {
  std::int64_t done = 0, all = 0;
  double seconds = 0;
};

std::optional<std::int64_t> whole(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// "1:02:03" or "02:03".
std::optional<double> clock(std::string_view text) {
  double seconds = 0;
  while (true) {
    const std::size_t colon = text.find(':');
    const auto part = whole(text.substr(0, colon));
    if (!part) return std::nullopt;
    seconds = seconds * 60 + static_cast<double>(*part);
    if (colon == std::string_view::npos) return seconds;
    text.remove_prefix(colon + 1);
  }
}

/// Bars with a word before the share are of other things than training: "Map: 100%|".
std::optional<Progress> progress(std::string_view line) {
  const std::size_t share = line.find("%|");
  if (share == std::string_view::npos) return std::nullopt;
  if (line.substr(0, share).find_first_not_of(" 0123456789") != std::string_view::npos)
    return std::nullopt;
  const std::size_t bar = line.find("| ", share + 2);
  const std::size_t open = line.find(" [", share);
  if (bar == std::string_view::npos || open == std::string_view::npos || open < bar)
    return std::nullopt;
  const std::string_view counts = line.substr(bar + 2, open - bar - 2);
  const std::size_t slash = counts.find('/'), less = line.find('<', open);
  if (slash == std::string_view::npos || less == std::string_view::npos) return std::nullopt;
  const auto done = whole(counts.substr(0, slash)), all = whole(counts.substr(slash + 1));
  const auto seconds = clock(line.substr(open + 2, less - open - 2));
  if (!done || !all || !seconds) return std::nullopt;
  return Progress{*done, *all, *seconds};
}

/// The run's own bar is the one that reached its end last.
std::vector<Progress> of_training(const std::vector<Progress>& all) {
  std::int64_t total = 0;
  for (const Progress& p : all)
    if (p.done == p.all) total = p.all;
  std::vector<Progress> own;
  for (const Progress& p : all)
    if (p.all == total) own.push_back(p);
  return own;
}

/// A whole second of rounding at both ends is at most this share.
constexpr double kRounding = 0.02;

std::optional<MeanStep> between_states(const std::vector<Progress>& bar) {
  const auto* first = static_cast<const Progress*>(nullptr);
  for (const Progress& p : bar)
    if (first == nullptr && p.done >= static_cast<std::int64_t>(kWarmUp)) first = &p;
  if (first == nullptr || bar.back().done <= first->done) return std::nullopt;
  const double seconds = bar.back().seconds - first->seconds;
  if (seconds < 1 / kRounding) return std::nullopt;
  const std::int64_t steps = bar.back().done - first->done;
  return MeanStep{seconds / static_cast<double>(steps), steps, false};
}

Logged read_trainer_lines(std::string_view text, const StepSize&) {
  Logged log;
  std::vector<Progress> states;
  std::optional<double> runtime, rate;
  for (const std::string_view line : lines_of(text)) {
    if (const auto p = progress(line)) states.push_back(*p);
    if (const auto seconds = number_after(line, "'train_runtime':")) {
      runtime = seconds;
      rate = number_after(line, "'train_steps_per_second':");
    }
  }
  if (!runtime) return log;
  const std::vector<Progress> bar = of_training(states);
  log.mean = between_states(bar);
  if (!log.mean && !bar.empty())
    log.mean = MeanStep{*runtime / static_cast<double>(bar.back().all), bar.back().all, true};
  if (!log.mean && rate && *rate >= 0.001 / kRounding)  // it is rounded to a thousandth
    log.mean = MeanStep{1 / *rate, 0, true};
  return log;
}

}  // namespace

const LogKind kTrainerLines{"HF Trainer's output", "'train_runtime' and 'train_steps_per_second'",
                            read_trainer_lines};

}  // namespace shardplan::logs
