#include "questions/fixes.h"

#include <algorithm>

#include "parallel/problem.h"
#include "questions/workers.h"

namespace shardplan {
namespace {

/// A change that saves less of the GPU than this is not worth a person's time.
constexpr double kWorthwhile = 0.01;

double seconds_per_sample(const Estimate& e, const Plan& plan) {
  const double samples =
      static_cast<double>(plan.workload.micro_batch * plan.workload.gradient_accumulation) *
      static_cast<double>(plan.workload.sequence_length);
  return e.time.step_seconds / samples;
}

/// Whether what divides the network still can after the change.
bool is_possible(const Model& model, Plan plan, const Change& change) {
  change.apply(plan);
  return !division_problem(model, plan);
}

Fix evaluate(const Model& model, const Plan& plan, const Estimate& now,
             const Calibration& calibration, std::vector<Change> changes) {
  Plan changed = plan;
  for (const Change& change : changes) change.apply(changed);
  Fix fix;
  fix.after = estimate(model, changed, calibration);
  fix.gpu_saved = now.device.point - fix.after.device.point;
  if (now.time.step_seconds > 0)
    fix.slowdown = seconds_per_sample(fix.after, changed) / seconds_per_sample(now, plan);
  fix.changes = std::move(changes);
  return fix;
}

bool better(const Fix& a, const Fix& b) {
  if (a.after.verdict.fits != b.after.verdict.fits) return a.after.verdict.fits;
  if (a.after.verdict.fits && a.slowdown != b.slowdown) return a.slowdown < b.slowdown;
  return a.gpu_saved > b.gpu_saved;
}

/// What each of the sets of changes would do, on several threads.
std::vector<Fix> evaluate_all(const Model& model, const Plan& plan, const Estimate& now,
                              const Calibration& calibration,
                              const std::vector<std::vector<Change>>& sets, const Effort& effort) {
  std::vector<Fix> fixes(sets.size());
  for_each_index(sets.size(), effort.threads, [&](std::size_t i) {
    if (!effort.stop.stop_requested()) fixes[i] = evaluate(model, plan, now, calibration, sets[i]);
  });
  return fixes;
}

/// Adds the change that saves most for the time it costs until the job fits or nothing helps.
/// `singles`: all changes, each alone.
Fix combine(const Model& model, const Plan& plan, const Estimate& now,
            const Calibration& calibration, const std::vector<Fix>& singles, const Effort& effort) {
  Plan changed = plan;
  Fix best;
  best.after = now;
  std::vector<Change> taken;
  constexpr std::size_t kMostChanges = 6;
  std::vector<Fix> candidates = singles;
  while (!candidates.empty()) {
    const Fix* next = nullptr;
    for (const Fix& candidate : candidates) {
      if (candidate.gpu_saved <= best.gpu_saved) continue;
      if (next == nullptr || better(candidate, *next)) next = &candidate;
    }
    if (next == nullptr) break;
    taken = next->changes;
    taken.back().apply(changed);
    best = *next;
    if (best.after.verdict.fits || taken.size() == kMostChanges) break;
    std::vector<std::vector<Change>> together;
    for (const Change& change : lighter_changes(model, changed)) {
      const bool used = std::any_of(taken.begin(), taken.end(),
                                    [&](const Change& t) { return t.subject == change.subject; });
      if (used || !is_possible(model, changed, change)) continue;
      together.push_back(taken);
      together.back().push_back(change);
    }
    candidates = evaluate_all(model, plan, now, calibration, together, effort);
    if (effort.stop.stop_requested()) break;
  }
  return best;
}

}  // namespace

std::vector<Fix> find_fixes(const Model& model, const Plan& plan, const Estimate& now,
                            const Calibration& calibration, const Effort& effort) {
  if (plan.workload.kind != WorkKind::train) return {};  // the changes are those of training
  std::vector<std::vector<Change>> alone;
  for (Change& change : lighter_changes(model, plan))
    if (is_possible(model, plan, change)) alone.push_back({std::move(change)});
  std::vector<Fix> singles = evaluate_all(model, plan, now, calibration, alone, effort);
  if (effort.stop.stop_requested()) return {};
  std::vector<Fix> fixes;
  for (const Fix& fix : singles)
    if (static_cast<double>(fix.gpu_saved) >= kWorthwhile * static_cast<double>(now.device.point))
      fixes.push_back(fix);
  std::stable_sort(fixes.begin(), fixes.end(), better);
  const bool one_is_enough = !fixes.empty() && fixes.front().after.verdict.fits;
  if (!now.verdict.fits && !one_is_enough) {
    Fix combined = combine(model, plan, now, calibration, singles, effort);
    if (effort.stop.stop_requested()) return {};
    if (combined.changes.size() > 1) fixes.insert(fixes.begin(), std::move(combined));
  }
  return fixes;
}

}  // namespace shardplan
