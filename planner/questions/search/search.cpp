#include "questions/search/search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "questions/largest.h"
#include "questions/search/front.h"
#include "questions/search/groups.h"
#include "questions/workers.h"

namespace shardplan {
namespace {

// Work is shared out in rounds of fixed size, so that what is pruned does not depend on threads.
constexpr std::int64_t kCandidatesARound = 512;
constexpr std::int64_t kLeastGroupsARound = 64;
constexpr std::size_t kSimulatedAtOnce = 8;

struct Candidate {
  std::int64_t index = 0;
  Score score;
};

class Searcher {
 public:
  explicit Searcher(const SearchInput& input)
      : input_(input), space_(input.space), tally_(input.space) {}

  SearchResult run() {
    check_not_empty();
    groups_ = find_groups(input_, tally_, closest_);
    std::sort(groups_.begin(), groups_.end(),
              [&](const CandidateGroup& a, const CandidateGroup& b) {
                return better(input_.goal.objective, a.score, a.first, b.score, b.first);
              });
    const auto at_once = static_cast<std::size_t>(
        std::max(kLeastGroupsARound, kCandidatesARound / std::max<std::int64_t>(1, members())));
    std::size_t next = 0;
    while (next < groups_.size() && !input_.stopped()) {
      const std::size_t end = std::min(next + at_once, groups_.size());
      round(next, end);
      next = end;
      report();
    }
    for (; next < groups_.size(); ++next) tally_.of(RuledOutBy::not_reached) += members();
    result_.interrupted = tally_.of(RuledOutBy::not_reached) > 0;
    return finish();
  }

 private:
  std::int64_t members() const { return space_.below(space_.work_fixed); }

  /// Rules of axes alone must leave something, whatever would fit.
  void check_not_empty() const {
    Plan plan = space_.base;
    Choice choice(space_.axes.size(), 0);
    Tally tally(space_);
    bool some = false;
    walk(space_, plan, choice, 0, space_.work_fixed, tally.by_axis, [&] { some = true; });
    if (!some) fail_empty(space_, tally);
  }

  void report() const {
    if (input_.control.progress)
      input_.control.progress({tally_.total(), space_.size(), front_.entries().size()});
  }

  /// What one group's full estimates say.
  struct Outcome {
    explicit Outcome(const SearchSpace& space) : tally(space) {}
    Tally tally;
    std::vector<Candidate> candidates;
    std::int64_t estimated = 0;
    Closest closest;
  };

  void round(std::size_t begin, std::size_t end) {
    std::vector<std::size_t> open;
    for (std::size_t g = begin; g < end; ++g) {
      if (front_.beats(groups_[g].score, groups_[g].first)) {
        tally_.of(RuledOutBy::cannot_win) += members();
      } else {
        open.push_back(g);
      }
    }
    std::vector<Outcome> outcomes(open.size(), Outcome(space_));
    std::vector<std::int32_t> passes;
    for (const std::size_t g : open) passes.push_back(groups_[g].passes);
    const auto batches = batches_of(passes);
    for_each_index(batches.size(), input_.control.threads, [&](std::size_t b) {
      std::optional<Passes> shared;  // of all members of all these groups
      for (const std::size_t i : batches[b]) estimate_group(groups_[open[i]], shared, outcomes[i]);
    });
    std::vector<Candidate> candidates;
    for (const Outcome& o : outcomes) {
      tally_.add(o.tally);
      result_.estimated += o.estimated;
      candidates.insert(candidates.end(), o.candidates.begin(), o.candidates.end());
      if (o.closest.index >= 0) closest_.offer(o.closest);
    }
    confirm(std::move(candidates));
  }

  void estimate_group(const CandidateGroup& group, std::optional<Passes>& passes,
                      Outcome& out) const {
    Choice choice = space_.choice_at(group.first);
    Plan plan = space_.plan_of(choice);
    const Model& model = input_.models.of(plan);
    if (!passes) passes = run_passes(model, plan, input_.calibration.time);
    walk(space_, plan, choice, space_.work_fixed, space_.axes.size(), out.tally.by_axis, [&] {
      const Estimate e = estimate(model, plan, *passes, input_.calibration, ReservedMemory::ratio);
      ++out.estimated;
      const std::int64_t index = space_.index_of(choice);
      const std::int64_t lacks = input_.lacking(plan, live_peak(e));
      if (lacks > 0) {
        ++out.tally.of(RuledOutBy::gpu);
        out.closest.offer({lacks, index, space_.axes.size()});
      } else if (e.verdict.host.fit == Fit::does_not_fit) {
        ++out.tally.of(RuledOutBy::host);
      } else if (e.verdict.nvme.fit == Fit::does_not_fit) {
        ++out.tally.of(RuledOutBy::nvme);
      } else if (e.time.step_seconds > longest_step(plan, input_.goal)) {
        ++out.tally.of(RuledOutBy::limit);
      } else {
        out.candidates.push_back(
            {index, score_of(plan, e.time.step_seconds, live_peak(e) + overhead_of(e))});
      }
    });
  }

  /// Simulates the allocator for those that nothing on the front beats, a few at a time: the most
  /// promising first, and none that another of the few would beat.
  void confirm(std::vector<Candidate> open) {
    std::sort(open.begin(), open.end(), [&](const Candidate& a, const Candidate& b) {
      return better(input_.goal.objective, a.score, a.index, b.score, b.index);
    });
    while (!open.empty()) {
      const auto beaten =
          std::erase_if(open, [&](const Candidate& c) { return front_.beats(c.score, c.index); });
      tally_.of(RuledOutBy::beaten) += static_cast<std::int64_t>(beaten);
      std::vector<Candidate> few, later;
      for (const Candidate& c : open) {
        const bool waits = few.size() == kSimulatedAtOnce ||
                           std::any_of(few.begin(), few.end(), [&](const Candidate& f) {
                             return dominates(f.score, f.index, c.score, c.index);
                           });
        (waits ? later : few).push_back(c);
      }
      simulate(few);
      open = std::move(later);
    }
  }

  void simulate(const std::vector<Candidate>& few) {
    std::vector<Estimate> estimates(few.size());
    for_each_index(few.size(), input_.control.threads, [&](std::size_t i) {
      const Plan plan = space_.plan_of(space_.choice_at(few[i].index));
      estimates[i] = estimate(input_.models.of(plan), plan, input_.calibration);
    });
    result_.simulated += static_cast<std::int64_t>(few.size());
    for (std::size_t i = 0; i < few.size(); ++i) {
      if (!estimates[i].verdict.fits) {
        ++tally_.of(RuledOutBy::allocator);
        closest_.offer(
            {std::max<std::int64_t>(0, estimates[i].device.upper - estimates[i].usable_bytes),
             few[i].index, space_.axes.size()});
        continue;
      }
      const std::size_t before = front_.entries().size();
      front_.admit({few[i].index, few[i].score, std::move(estimates[i])});
      tally_.of(RuledOutBy::beaten) +=
          static_cast<std::int64_t>(before + 1 - front_.entries().size());
    }
  }

  Found found(std::int64_t index, Estimate e) const {
    Choice choice = space_.choice_at(index);
    Plan plan = space_.plan_of(choice);
    return {index, std::move(choice), std::move(plan), std::move(e)};
  }

  SearchResult finish() {
    result_.candidates = space_.size();
    result_.ruled_out = tally_.counts(space_);
    std::vector<FrontEntry> entries = front_.entries();
    std::sort(entries.begin(), entries.end(), [&](const FrontEntry& a, const FrontEntry& b) {
      return better(input_.goal.objective, a.score, a.index, b.score, b.index);
    });
    std::vector<Score> scores;
    for (const FrontEntry& e : entries) scores.push_back(e.score);
    const auto chosen = entries.begin() + static_cast<std::ptrdiff_t>(
                                              simplest_of_ties(input_.goal.objective, scores));
    std::rotate(entries.begin(), chosen, entries.empty() ? chosen : chosen + 1);
    for (FrontEntry& e : entries) result_.front.push_back(found(e.index, std::move(e.estimate)));
    if (result_.front.empty() && !result_.interrupted) explain_nothing();
    return std::move(result_);
  }

  void explain_nothing() {
    if (tally_.of(RuledOutBy::limit) + tally_.of(RuledOutBy::compute_limit) > 0) {
      Goal free = input_.goal;
      free.limits = {};
      SearchResult without =
          search(input_.models, space_, free, input_.calibration, input_.control);
      if (!without.front.empty()) result_.beyond_limits = std::move(without.front.front());
      result_.near_miss = std::move(without.near_miss);
    } else if (closest_.index >= 0) {
      result_.near_miss = near_miss();
    }
  }

  NearMiss near_miss() const {
    NearMiss miss;
    const std::int64_t index = lightest_below(closest_);
    const Plan plan = space_.plan_of(space_.choice_at(index));
    const Model& model = input_.models.of(plan);
    miss.plan = found(index, estimate(model, plan, input_.calibration));
    miss.fixes = find_fixes(model, plan, miss.plan.estimate, input_.calibration);
    miss.enough_gpus = fewest_gpus(model, plan, input_.calibration).value;
    return miss;
  }

  /// The candidate of a subtree with the fewest live bytes.
  std::int64_t lightest_below(const Closest& root) const {
    Choice choice = space_.choice_at(root.index);
    Plan plan = space_.plan_of(choice);
    Tally unused(space_);
    std::int64_t best = root.index, least = -1;
    walk(space_, plan, choice, root.depth, space_.axes.size(), unused.by_axis, [&] {
      const std::int64_t bytes =
          estimate(input_.models.of(plan), plan, input_.calibration, ReservedMemory::ratio)
              .allocated.point;
      if (least >= 0 && bytes >= least) return;
      least = bytes;
      best = space_.index_of(choice);
    });
    return best;
  }

  const SearchInput& input_;
  const SearchSpace& space_;
  Tally tally_;
  std::vector<CandidateGroup> groups_;
  ParetoFront front_;
  Closest closest_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const ModelVariants& models, const SearchSpace& space, const Goal& goal,
                    const Calibration& calibration, const SearchControl& control) {
  return Searcher({models, space, goal, calibration, control}).run();
}

}  // namespace shardplan
