#include "questions/fixes.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/checked.h"
#include "parallel/problem.h"
#include "questions/estimate_job.h"
#include "questions/job_changes.h"
#include "questions/workers.h"

namespace shardplan {
namespace {

/// A change that saves less of the GPU than this is not worth a person's time.
constexpr double kWorthwhile = 0.01;

/// Of all GPUs together: a change of degrees changes how many samples a step has. 0: unknown.
double slowdown(const Estimate& before, const Estimate& after) {
  const double was = before.time.tokens_per_second, is = after.time.tokens_per_second;
  return was > 0 && is > 0 ? was / is : 0;
}

/// What a search for fixes asks of the job that it is about.
struct Asked {
  /// The changes that a job with these ones can take besides.
  std::function<std::vector<Change>(const std::vector<Change>& taken)> possible;
  /// Nothing when the job cannot be run, or estimated, with them.
  std::function<std::optional<Fix>(const std::vector<Change>& changes)> evaluate;
};

bool better(const Fix& a, const Fix& b) {
  if (a.after.verdict.fits != b.after.verdict.fits) return a.after.verdict.fits;
  if (a.after.verdict.fits && a.slowdown != b.slowdown) return a.slowdown < b.slowdown;
  return a.gpu_saved > b.gpu_saved;
}

/// What each of the sets of changes would do, on several threads.
std::vector<Fix> evaluate_all(const Asked& asked, const std::vector<std::vector<Change>>& sets,
                              const Effort& effort) {
  std::vector<std::optional<Fix>> found(sets.size());
  for_each_index(sets.size(), effort.threads, [&](std::size_t i) {
    if (!effort.stop.stop_requested()) found[i] = asked.evaluate(sets[i]);
  });
  std::vector<Fix> fixes;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (!found[i]) continue;
    fixes.push_back(std::move(*found[i]));
    fixes.back().changes = sets[i];
  }
  return fixes;
}

/// Adds the change that saves most for the time it costs until the job fits or nothing helps.
/// `singles`: all changes, each alone.
Fix combine(const Asked& asked, const Estimate& now, const std::vector<Fix>& singles,
            const Effort& effort) {
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
    best = *next;
    if (best.after.verdict.fits || taken.size() == kMostChanges) break;
    std::vector<std::vector<Change>> together;
    for (const Change& change : asked.possible(taken)) {
      const bool used = std::any_of(taken.begin(), taken.end(),
                                    [&](const Change& t) { return t.subject == change.subject; });
      if (used) continue;
      together.push_back(taken);
      together.back().push_back(change);
    }
    candidates = evaluate_all(asked, together, effort);
    if (effort.stop.stop_requested()) break;
  }
  return best;
}

std::vector<Fix> search_fixes(const Asked& asked, const Estimate& now, const Effort& effort) {
  std::vector<std::vector<Change>> alone;
  for (Change& change : asked.possible({})) alone.push_back({std::move(change)});
  const std::vector<Fix> singles = evaluate_all(asked, alone, effort);
  if (effort.stop.stop_requested()) return {};
  std::vector<Fix> fixes;
  for (const Fix& fix : singles)
    if (static_cast<double>(fix.gpu_saved) >= kWorthwhile * static_cast<double>(now.device.point))
      fixes.push_back(fix);
  std::stable_sort(fixes.begin(), fixes.end(), better);
  const bool one_is_enough = !fixes.empty() && fixes.front().after.verdict.fits;
  if (!now.verdict.fits && !one_is_enough) {
    Fix combined = combine(asked, now, singles, effort);
    if (effort.stop.stop_requested()) return {};
    if (combined.changes.size() > 1) fixes.insert(fixes.begin(), std::move(combined));
  }
  return fixes;
}

}  // namespace

std::vector<Fix> find_fixes(const Model& model, const Plan& plan, const Estimate& now,
                            const Calibration& calibration, const Effort& effort) {
  if (plan.workload.kind != WorkKind::train) return {};  // the changes are those of training
  Asked asked;
  asked.possible = [&](const std::vector<Change>& taken) {
    Plan changed = plan;
    for (const Change& change : taken) change.apply(changed);
    std::vector<Change> changes = lighter_changes(model, changed);
    std::erase_if(changes, [&](const Change& change) {  // what divides the network still must
      Plan divided = changed;
      change.apply(divided);
      return division_problem(model, divided).has_value();
    });
    return changes;
  };
  asked.evaluate = [&](const std::vector<Change>& changes) {
    Plan changed = plan;
    for (const Change& change : changes) change.apply(changed);
    Fix fix;
    fix.after = estimate(model, changed, calibration);
    fix.gpu_saved = now.device.point - fix.after.device.point;
    fix.slowdown = slowdown(now, fix.after);
    return std::optional(std::move(fix));
  };
  return search_fixes(asked, now, effort);
}

std::vector<Fix> find_fixes(const Job& job, const WrittenJob& written, const Estimate& now,
                            const Calibration& calibration, const Effort& effort) {
  if (job.plan.workload.kind == WorkKind::train)
    return find_fixes(job.model, job.plan, now, calibration, effort);
  const auto changed = [&](const std::vector<Change>& changes) {
    return load_job(with_fields(written.json, changes), written.file, written.context);
  };
  Asked asked;
  asked.possible = [&](const std::vector<Change>& taken) {
    return lighter_changes(taken.empty() ? job : changed(taken), with_fields(written.json, taken));
  };
  asked.evaluate = [&](const std::vector<Change>& changes) -> std::optional<Fix> {
    try {
      const Job other = changed(changes);
      Fix fix;
      fix.after = estimate_job(other, calibration);
      fix.gpu_saved = now.device.point - fix.after.device.point;
      fix.slowdown = slowdown(now, fix.after);
      return fix;
    } catch (const InputError&) {  // the change cannot be had with all else in this job
      return std::nullopt;
    } catch (const OverflowError&) {
      return std::nullopt;
    }
  };
  return search_fixes(asked, now, effort);
}

}  // namespace shardplan
