#include "questions/fixes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/checked.h"
#include "checkpointing/problems.h"
#include "parallel/degrees.h"
#include "parallel/problem.h"
#include "questions/estimate_job.h"
#include "questions/host_changes.h"
#include "questions/job_changes.h"
#include "questions/training_changes.h"
#include "questions/workers.h"

namespace shardplan {
namespace {

/// A change that saves less of what runs short than this is not worth a person's time.
constexpr double kWorthwhile = 0.01;

/// Of all GPUs together: a change of degrees changes how many samples a step has. 0: unknown.
double slowdown(const Estimate& before, const Estimate& after) {
  const double was = before.time.tokens_per_second, is = after.time.tokens_per_second;
  return was > 0 && is > 0 ? was / is : 0;
}

/// Bytes of what `now` has too little of; of the GPU where it has enough of everything.
std::int64_t bytes_short(const Estimate& now, const Estimate& of) {
  const std::string_view limit = now.verdict.limited_by;
  return limit == "host"   ? of.verdict.host.needed
         : limit == "nvme" ? of.verdict.nvme.needed
                           : of.device.point;
}

Fix fix_of(const Estimate& now, const Estimate& after, const std::vector<Change>& changes) {
  return {.changes = changes,
          .after = after,
          .gpu_saved = now.device.point - after.device.point,
          .slowdown = slowdown(now, after)};
}

/// What a search for fixes asks of the job that it is about.
struct Asked {
  std::int64_t blocks = 0;  ///< that can be checkpointed one by one; 0: none
  /// The changes that a job with these ones can take besides. Of a job that fits: a part of those
  /// of one that does not.
  std::function<std::vector<Change>(const std::vector<Change>& taken, bool fits)> possible;
  /// The share of each GPU that an engine is told to take, where the job has one on its GPUs.
  std::optional<EngineShare> share{};
  /// Changes that take less of the hosts, for a job that has too little of those.
  std::vector<Change> less_on_hosts{};
  /// Nothing when the job cannot be run, or estimated, with them. Without any: the job as it is.
  std::function<std::optional<Estimate>(const std::vector<Change>& changes)> evaluate;
};

/// The most that one of its changes gives up.
Sacrifice sacrifice_of(const Fix& fix) {
  Sacrifice most = Sacrifice::nothing;
  for (const Change& change : fix.changes) most = std::max(most, change.sacrifice);
  return most;
}

/// Bytes that a fix saves of it.
std::int64_t saved(const Estimate& now, const Fix& fix) {
  return bytes_short(now, now) - bytes_short(now, fix.after);
}

bool better(const Estimate& now, const Fix& a, const Fix& b) {
  if (a.after.verdict.fits != b.after.verdict.fits) return a.after.verdict.fits;
  if (a.after.verdict.fits && sacrifice_of(a) != sacrifice_of(b))
    return sacrifice_of(a) < sacrifice_of(b);
  if (a.after.verdict.fits && a.slowdown != b.slowdown) return a.slowdown < b.slowdown;
  return saved(now, a) > saved(now, b);
}

using Sets = std::vector<std::vector<Change>>;

/// What sets of changes would do, each asked about once: searches with more and less to give up
/// meet many of them again.
class Evaluations {
 public:
  Evaluations(const Asked& asked, const Effort& effort) : asked_(asked), effort_(effort) {}

  /// Asks about those that were not asked about yet, on several threads.
  void ask(const Sets& sets) {
    std::vector<const std::vector<Change>*> unknown;
    for (const std::vector<Change>& set : sets)
      if (known_.emplace(name_of(set), std::nullopt).second) unknown.push_back(&set);
    std::vector<std::optional<Estimate>> found(unknown.size());
    for_each_index(unknown.size(), effort_.threads, [&](std::size_t i) {
      if (!stopped()) found[i] = asked_.evaluate(*unknown[i]);
    });
    for (std::size_t i = 0; i < found.size(); ++i)
      known_[name_of(*unknown[i])] = std::move(found[i]);
  }

  /// Of those that can be had, in their order. `now`: the job as it is.
  std::vector<Fix> of(const Sets& sets, const Estimate& now) {
    ask(sets);
    std::vector<Fix> fixes;
    for (const std::vector<Change>& set : sets)
      if (const auto& after = known_[name_of(set)]) fixes.push_back(fix_of(now, *after, set));
    return fixes;
  }

  /// Of a set that was asked about.
  const std::optional<Estimate>& known(const std::vector<Change>& set) {
    return known_[name_of(set)];
  }

  const Asked& asked() const { return asked_; }
  bool stopped() const { return effort_.stop.stop_requested(); }
  std::size_t wanted() const { return effort_.most; }

 private:
  static std::string name_of(const std::vector<Change>& set) {
    std::string name;
    for (const Change& change : set) name += change.what + '\n' + change.how + '\n';
    return name;
  }

  const Asked& asked_;
  const Effort& effort_;
  std::map<std::string, std::optional<Estimate>> known_;
};

/// Another share of the GPU for the engine, in hundredths: beside a trainer the largest that leaves
/// it room, for an engine alone the least with room for its sequences, or the largest that the GPU
/// has beside its process. After the changes `taken`.
std::optional<Fix> other_share(const Asked& asked, const Estimate& now,
                               const std::vector<Change>& taken) {
  if (!asked.share || now.verdict.fits) return std::nullopt;
  const EngineShare& share = *asked.share;
  std::optional<Fix> best;
  const bool larger = share.alone && now.device.upper <= now.usable_bytes;
  std::int64_t low = larger ? share.hundredths : 0, high = larger ? 101 : share.hundredths;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    std::vector<Change> changes = taken;
    changes.push_back(share.changed(middle));
    const std::optional<Estimate> after = asked.evaluate(changes);
    // Refused, or without a cache: less than one sequence wants.
    const bool too_small = !after || (after->serving && after->verdict.headroom_bytes < 0 &&
                                      after->device.upper <= after->usable_bytes);
    const bool fits = after && after->verdict.fits;
    if (fits) best = fix_of(now, *after, changes);
    ((larger ? too_small : too_small || fits) ? low : high) = middle;
  }
  return best;
}

/// Adds the change that saves most for the time it costs until the job fits or nothing helps.
/// `singles`: all changes, each alone. None gives up more than `at_most`.
Fix combine(Evaluations& evaluations, const Estimate& now, const std::vector<Fix>& singles,
            Sacrifice at_most) {
  Fix best;
  best.after = now;
  std::vector<Change> taken;
  constexpr std::size_t kMostChanges = 6;
  std::vector<Fix> candidates = singles;
  std::erase_if(candidates, [&](const Fix& fix) { return sacrifice_of(fix) > at_most; });
  while (!candidates.empty()) {
    const Fix* next = nullptr;
    for (const Fix& candidate : candidates) {
      if (saved(now, candidate) <= saved(now, best)) continue;
      if (next == nullptr || better(now, candidate, *next)) next = &candidate;
    }
    if (next == nullptr) break;
    taken = next->changes;
    best = *next;
    if (best.after.verdict.fits || taken.size() == kMostChanges) break;
    // Less for an engine gives nothing up.
    if (auto share = other_share(evaluations.asked(), now, taken)) {
      best = std::move(*share);
      break;
    }
    Sets together;
    for (const Change& change : evaluations.asked().possible(taken, now.verdict.fits)) {
      const bool used = std::any_of(taken.begin(), taken.end(),
                                    [&](const Change& t) { return t.subject == change.subject; });
      if (used || change.sacrifice > at_most) continue;
      together.push_back(taken);
      together.back().push_back(change);
    }
    candidates = evaluations.of(together, now);
    if (evaluations.stopped()) break;
  }
  return best;
}

/// Those of the fixes, the least first.
std::set<Sacrifice> sacrifices_of(const std::vector<Fix>& fixes) {
  std::set<Sacrifice> all;
  for (const Fix& fix : fixes) all.insert(sacrifice_of(fix));
  return all;
}

bool worthwhile(const Fix& fix, const Estimate& now) {
  return static_cast<double>(saved(now, fix)) >=
         kWorthwhile * static_cast<double>(bytes_short(now, now));
}

bool is_enough(const Fix& fix, const Estimate& now) {
  return fix.after.verdict.fits && worthwhile(fix, now);
}

/// Clusters that grow, smallest first. Those after the first that is enough are not asked about:
/// nobody would be told.
std::vector<Fix> evaluate_clusters(Evaluations& evaluations, const Estimate& now,
                                   const Sets& sets) {
  std::vector<Fix> fixes;
  for (const std::vector<Change>& set : sets) {
    if (!fixes.empty() && is_enough(fixes.back(), now)) break;
    for (Fix& fix : evaluations.of({set}, now)) fixes.push_back(std::move(fix));
  }
  return fixes;
}

/// Each change alone, those that give up least first.
std::map<Sacrifice, Sets> alone(std::vector<Change> changes) {
  std::map<Sacrifice, Sets> sets;
  for (Change& change : changes) {
    const Sacrifice sacrifice = change.sacrifice;
    sets[sacrifice].push_back({std::move(change)});
  }
  return sets;
}

/// Each change alone. Once as many as are wanted are enough, the rest is not asked about: it gives
/// up more, and ranks behind them.
std::vector<Fix> evaluate_alone(Evaluations& evaluations, const Estimate& now) {
  std::vector<Fix> fixes;
  std::size_t enough = 0;
  for (const auto& [sacrifice, sets] : alone(evaluations.asked().possible({}, now.verdict.fits))) {
    if (enough >= evaluations.wanted()) break;
    for (Fix& fix : sacrifice == Sacrifice::more_gpus ? evaluate_clusters(evaluations, now, sets)
                                                      : evaluations.of(sets, now)) {
      if (is_enough(fix, now)) ++enough;
      fixes.push_back(std::move(fix));
    }
  }
  return fixes;
}

/// What evaluate_alone() asks about a job that fits, unless everything before it helps: so it can
/// be asked beside the job itself.
Sets asked_anyway(const Asked& asked, std::size_t wanted) {
  Sets all;
  for (auto& [sacrifice, sets] : alone(asked.possible({}, true))) {
    if (all.size() > wanted) break;
    if (sacrifice == Sacrifice::more_gpus) sets.resize(std::min<std::size_t>(sets.size(), 1));
    for (std::vector<Change>& set : sets) all.push_back(std::move(set));
  }
  return all;
}

/// Of clusters that grow, smallest first: only the first that is enough, else the last.
void keep_one_cluster(std::vector<Fix>& fixes) {
  const auto grows = [](const Fix& fix) { return sacrifice_of(fix) == Sacrifice::more_gpus; };
  std::optional<Fix> kept;
  for (const Fix& fix : fixes)
    if (grows(fix) && !(kept && kept->after.verdict.fits)) kept = fix;
  std::erase_if(fixes, grows);
  if (kept) fixes.push_back(std::move(*kept));
}

/// The fewest blocks whose checkpointing is enough, where that of all is; the time it costs grows
/// with each.
std::optional<Fix> fewest_blocks(const Asked& asked, const Estimate& now,
                                 const std::vector<Fix>& singles) {
  const bool all_are_enough = std::ranges::any_of(singles, [](const Fix& fix) {
    return fix.changes.front().subject == "checkpointing" && fix.after.verdict.fits;
  });
  std::optional<Fix> best;
  if (!all_are_enough) return best;
  std::int64_t too_few = 0, enough = asked.blocks;
  while (enough - too_few > 1) {
    const std::int64_t count = too_few + (enough - too_few) / 2;
    const std::vector<Change> changes{first_blocks(count)};
    const std::optional<Estimate> after = asked.evaluate(changes);
    if (!after) return std::nullopt;
    if (!after->verdict.fits) {
      too_few = count;
      continue;
    }
    enough = count;
    best = fix_of(now, *after, changes);
  }
  return best;
}

std::vector<Fix> search_fixes(Evaluations& evaluations, const Estimate& now) {
  const Asked& asked = evaluations.asked();
  std::vector<Fix> singles = evaluate_alone(evaluations, now);
  if (now.verdict.limited_by == "host" || now.verdict.limited_by == "nvme") {
    Sets sets;
    for (const Change& change : asked.less_on_hosts) sets.push_back({change});
    for (Fix& fix : evaluations.of(sets, now)) singles.push_back(std::move(fix));
  }
  if (evaluations.stopped()) return {};
  std::vector<Fix> fixes;
  for (const Fix& fix : singles)
    if (worthwhile(fix, now)) fixes.push_back(fix);
  if (!now.verdict.fits && asked.blocks > 1)
    if (auto fewest = fewest_blocks(asked, now, singles)) fixes.push_back(std::move(*fewest));
  if (auto share = other_share(asked, now, {})) fixes.push_back(std::move(*share));
  keep_one_cluster(fixes);
  std::stable_sort(fixes.begin(), fixes.end(),
                   [&](const Fix& a, const Fix& b) { return better(now, a, b); });
  const bool one_is_enough = !fixes.empty() && fixes.front().after.verdict.fits;
  if (!now.verdict.fits && !one_is_enough) {
    Fix combined;
    for (const Sacrifice at_most : sacrifices_of(singles)) {
      combined = combine(evaluations, now, singles, at_most);
      if (evaluations.stopped()) return {};
      if (combined.after.verdict.fits) break;
    }
    if (combined.changes.size() > 1) fixes.insert(fixes.begin(), std::move(combined));
  }
  if (fixes.size() > evaluations.wanted()) fixes.resize(evaluations.wanted());
  return fixes;
}

/// The changes of a plan that still divide the network as the plan does.
std::vector<Change> plan_changes(const Model& model, const Plan& plan, bool fits) {
  std::vector<Change> changes = lighter_changes(model, plan);
  if (!fits)
    for (Change& change : finer_checkpointing(model, plan)) changes.push_back(std::move(change));
  std::erase_if(changes, [&](const Change& change) {
    Plan divided = plan;
    change.apply(divided);
    return division_problem(model, divided).has_value() ||
           checkpointing_problem(model, divided).has_value();
  });
  return changes;
}

/// Blocks of a plan that checkpoints none, where it can checkpoint some.
std::int64_t blocks_to_checkpoint(const Model& model, const Plan& plan) {
  if (plan.checkpointing != Checkpointing::none || plan.workload.kind != WorkKind::train) return 0;
  Plan some = plan;
  first_blocks(1).apply(some);
  return checkpointing_problem(model, some) ? 0 : block_count(model);
}

Asked asked_of(const Job& job, const WrittenJob& written, const Calibration& calibration) {
  Asked asked;
  if (!job.rlhf) asked.blocks = blocks_to_checkpoint(job.model, job.plan);
  asked.share = engine_share(job);
  if (job.plan.workload.kind == WorkKind::train) asked.less_on_hosts = less_on_hosts(job.plan);
  asked.possible = [&](const std::vector<Change>& taken, bool fits) {
    const Job other = changed_job(job, written, taken);
    const Json said = with_fields(written.json, taken);
    if (job.plan.workload.kind != WorkKind::train) return lighter_changes(other, said);
    std::vector<Change> changes = plan_changes(other.model, other.plan, fits);
    for (Change& change : training_changes(other, said)) changes.push_back(std::move(change));
    return changes;
  };
  asked.evaluate = [&](const std::vector<Change>& changes) -> std::optional<Estimate> {
    if (changes.empty()) return estimate_job(job, calibration);
    try {
      const Job other = changed_job(job, written, changes);
      if (!job.rlhf && checkpointing_problem(other.model, other.plan)) return std::nullopt;
      return estimate_job(other, calibration);
    } catch (const InputError&) {  // the change cannot be had with all else in this job
      return std::nullopt;
    } catch (const OverflowError&) {
      return std::nullopt;
    }
  };
  return asked;
}

}  // namespace

Job changed_job(const Job& job, const WrittenJob& written, const std::vector<Change>& changes) {
  const bool says = std::any_of(changes.begin(), changes.end(),
                                [](const Change& change) { return !change.fields.empty(); });
  Job changed =
      says ? load_job(with_fields(written.json, changes), written.file, written.context) : job;
  for (const Change& change : changes)
    if (change.apply) change.apply(changed.plan);
  return changed;
}

std::vector<Fix> find_fixes(const Model& model, const Plan& plan, const Estimate& now,
                            const Calibration& calibration, const Effort& effort) {
  if (plan.workload.kind != WorkKind::train) return {};  // the changes are those of training
  const auto changed = [&](const std::vector<Change>& changes) {
    Plan other = plan;
    for (const Change& change : changes) change.apply(other);
    return other;
  };
  Asked asked;
  asked.blocks = blocks_to_checkpoint(model, plan);
  asked.possible = [&](const std::vector<Change>& taken, bool fits) {
    return plan_changes(model, changed(taken), fits);
  };
  asked.evaluate = [&](const std::vector<Change>& changes) {
    return std::optional(estimate(model, changed(changes), calibration));
  };
  Evaluations evaluations(asked, effort);
  return search_fixes(evaluations, now);
}

std::vector<Fix> find_fixes(const Job& job, const WrittenJob& written, const Estimate& now,
                            const Calibration& calibration, const Effort& effort) {
  const Asked asked = asked_of(job, written, calibration);
  Evaluations evaluations(asked, effort);
  return search_fixes(evaluations, now);
}

FixedEstimate estimate_and_fix(const Job& job, const WrittenJob& written,
                               const Calibration& calibration, const Effort& effort) {
  const Asked asked = asked_of(job, written, calibration);
  Evaluations evaluations(asked, effort);
  const std::vector<Change> as_it_is;
  Sets first = asked_anyway(asked, effort.most);
  first.insert(first.begin(), as_it_is);
  evaluations.ask(first);
  FixedEstimate both;
  both.now = evaluations.known(as_it_is).value();
  both.fixes = search_fixes(evaluations, both.now);
  return both;
}

}  // namespace shardplan
