#include "questions/capacity.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "lowering/inference/generate.h"

namespace shardplan {
namespace {

using EstimateOf = std::function<Estimate(std::int64_t)>;

/// A batch and what its estimate needs at most.
struct Trial {
  std::int64_t batch;
  Estimate estimate;
  double upper() const { return static_cast<double>(estimate.device.upper); }
};

/// Where a line through two of them meets what a GPU has.
std::int64_t extrapolated(const Trial& a, const Trial& b) {
  const double each = (b.upper() - a.upper()) / static_cast<double>(b.batch - a.batch);
  const double room = static_cast<double>(a.estimate.usable_bytes) - a.upper();
  constexpr double kMaxStep = 1e9;
  return a.batch + static_cast<std::int64_t>(std::clamp(room / each, -kMaxStep, kMaxStep));
}

/// The largest batch that fits, and its estimate. Needs grow almost evenly: lines between what was
/// tried lead there in a few steps.
std::optional<Trial> largest(const EstimateOf& estimate_of) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  constexpr int kStraight = 6;  // tries by lines; then halves, should needs grow in jumps
  Trial before{1, estimate_of(1)};
  if (!before.estimate.verdict.fits) return std::nullopt;
  Trial good{2, estimate_of(2)};
  if (!good.estimate.verdict.fits) return before;
  std::optional<Trial> bad;
  for (int tries = 0; good.batch < kMost && (!bad || bad->batch - good.batch > 1); ++tries) {
    const bool halves = bad && tries >= kStraight;
    const std::int64_t guess = halves ? good.batch + (bad->batch - good.batch) / 2
                                      : extrapolated(good, bad ? *bad : before);
    const std::int64_t batch = std::clamp(guess, good.batch + 1, bad ? bad->batch - 1 : kMost);
    Trial tried{batch, estimate_of(batch)};
    if (tried.estimate.verdict.fits) {
      before = std::exchange(good, std::move(tried));
    } else {
      bad = std::move(tried);
    }
  }
  return good;
}

Plan with_lengths(const Plan& plan, std::int64_t prompt, std::int64_t batch) {
  Plan changed = plan;
  Workload& w = changed.workload;
  w.sequence_length = prompt;
  w.micro_batch = batch;
  if (w.generation.injection)
    w.generation.injection->max_out_tokens =
        std::max(w.generation.injection->max_out_tokens, prompt + w.generation.new_tokens);
  return changed;
}

}  // namespace

std::vector<ContextCapacity> batches_that_fit(const Model& model, const Plan& plan,
                                              const Calibration& calibration) {
  const Workload& w = plan.workload;
  const std::int64_t most = model.facts.longest_sequence;
  std::vector<ContextCapacity> all;
  constexpr std::array<std::int64_t, 5> kQuarters{1, 2, 4, 8, 16};
  for (const std::int64_t quarters : kQuarters) {
    ContextCapacity c;
    c.is_current = quarters == 4;
    c.prompt_length = std::max<std::int64_t>(1, checked_mul(w.sequence_length, quarters) / 4);
    c.context = checked_add(c.prompt_length, w.generation.new_tokens);
    if (!c.is_current && most > 0 && c.context > most) continue;
    const auto found = largest([&](std::int64_t batch) {
      return estimate(model, with_lengths(plan, c.prompt_length, batch), calibration);
    });
    if (found) {
      c.batch = found->batch;
      c.cache_bytes = full_cache_bytes(model, with_lengths(plan, c.prompt_length, found->batch));
      if (const auto& generation = found->estimate.time.generation)
        c.tokens_per_second = generation->decode_tokens_per_second;
    }
    all.push_back(c);
  }
  return all;
}

}  // namespace shardplan
