#include "questions/search/search.h"

#include <algorithm>
#include <utility>

#include "questions/largest.h"
#include "questions/search/bounds.h"
#include "questions/search/front.h"
#include "questions/search/tally.h"
#include "questions/workers.h"

namespace shardplan {
namespace {

// Work is shared out in rounds of fixed size, so that what is pruned does not depend on threads.
constexpr std::size_t kGroupsARound = 64;
constexpr std::size_t kSimulatedAtOnce = 8;

/// All candidates below a choice of the first axes, those that decide activations and computation.
struct Group {
  Choice choice;  ///< full; the axes behind are at value 0
  std::int64_t first = 0;
  StatesBound states;
  WorkBound bound;
  Score score;  ///< at best
  bool is_out = false;
};

struct Candidate {
  std::int64_t index = 0;
  Score score;
};

/// The candidate, or subtree, that lacks the fewest bytes, of any memory.
struct Closest {
  std::int64_t excess = 0;
  std::int64_t index = -1;
  std::size_t depth = 0;  ///< so many axes are decided

  void offer(const Closest& other) {
    if (index < 0 || std::pair(other.excess, other.index) < std::pair(excess, index)) *this = other;
  }
};

class Searcher {
 public:
  Searcher(const Model& model, const SearchSpace& space, const Goal& goal,
           const Calibration& calibration, const SearchControl& control)
      : model_(model),
        space_(space),
        goal_(goal),
        calibration_(calibration),
        control_(control),
        tally_(space) {}

  SearchResult run() {
    check_not_empty();
    find_groups();
    bound_groups();
    std::size_t next = 0;
    while (next < groups_.size() && !stopped()) {
      const std::size_t end = std::min(next + kGroupsARound, groups_.size());
      round(next, end);
      next = end;
      report();
    }
    result_.interrupted = next < groups_.size();
    for (; next < groups_.size(); ++next) tally_.of(Rule::not_reached) += members();
    return finish();
  }

 private:
  bool stopped() const { return control_.stop != nullptr && control_.stop->load(); }
  std::int64_t members() const { return space_.below(space_.work_fixed); }
  /// Bytes that the GPU lacks at least when live tensors peak at `allocated`.
  std::int64_t lacking(const Plan& p, std::int64_t allocated) const {
    return std::max<std::int64_t>(
        0, least_device_upper(p, calibration_, allocated) - p.cluster.gpu.usable.count());
  }

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
    if (control_.progress)
      control_.progress({tally_.total(), space_.size(), front_.entries().size()});
  }

  /// Walks the axes that decide model states, then those that decide the work.
  void find_groups() {
    Plan plan = space_.base;
    Choice choice(space_.axes.size(), 0);
    walk(space_, plan, choice, 0, space_.states_fixed, tally_.by_axis, [&] {
      std::fill(choice.begin() + static_cast<std::ptrdiff_t>(space_.states_fixed), choice.end(), 0);
      const StatesBound states = states_bound(model_, space_, plan, calibration_);
      if (states_rule_out(plan, choice, states)) return;
      walk(space_, plan, choice, space_.states_fixed, space_.work_fixed, tally_.by_axis, [&] {
        Group group;
        group.choice = choice;
        group.first = space_.index_of(choice);
        group.states = states;
        groups_.push_back(std::move(group));
      });
    });
  }

  bool states_rule_out(const Plan& plan, const Choice& choice, const StatesBound& states) {
    const auto exceeds = [&](std::int64_t bytes) { return lacking(plan, bytes) > 0; };
    std::optional<Rule> rule;
    if (exceeds(states.parameter_bytes)) {
      rule = Rule::parameters;
    } else if (exceeds(states.resident_bytes)) {
      rule = Rule::states;
    } else if (states.host == Fit::does_not_fit) {
      rule = Rule::host_states;
    } else if (states.nvme == Fit::does_not_fit) {
      rule = Rule::nvme_states;
    }
    if (!rule) return false;
    tally_.of(*rule) += space_.below(space_.states_fixed);
    closest_.offer({lacking(plan, states.resident_bytes) + states.off_gpu_excess,
                    space_.index_of(choice), space_.states_fixed});
    return true;
  }

  /// Bounds every group, drops those that cannot fit, and puts the most promising first.
  void bound_groups() {
    std::vector<Tally> tallies(groups_.size(), Tally(space_));
    for_each_index(groups_.size(), control_.threads,
                   [&](std::size_t g) { bound_group(groups_[g], tallies[g]); });
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      tally_.add(tallies[g]);
      if (tallies[g].of(Rule::activations) == 0) continue;
      const Plan plan = space_.plan_of(groups_[g].choice);
      closest_.offer(
          {lacking(plan, groups_[g].bound.allocated_bytes), groups_[g].first, space_.work_fixed});
    }
    std::erase_if(groups_, [](const Group& g) { return g.is_out; });
    std::sort(groups_.begin(), groups_.end(), [&](const Group& a, const Group& b) {
      return better(goal_.objective, a.score, a.first, b.score, b.first);
    });
  }

  void bound_group(Group& group, Tally& tally) const {
    const Plan plan = space_.plan_of(group.choice);
    const Passes passes = run_passes(model_, plan, calibration_.time);
    group.bound = work_bound(plan, passes, group.states, calibration_);
    if (lacking(plan, group.bound.allocated_bytes) > 0) {
      tally.of(Rule::activations) += members();
      group.is_out = true;
    } else if (group.bound.step_seconds > longest_step(plan, goal_)) {
      tally.of(Rule::compute_limit) += members();
      group.is_out = true;
    }
    group.score = score_of(plan, group.bound.step_seconds,
                           group.bound.allocated_bytes + group.states.overhead_bytes);
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
        tally_.of(Rule::cannot_win) += members();
      } else {
        open.push_back(g);
      }
    }
    std::vector<Outcome> outcomes(open.size(), Outcome(space_));
    for_each_index(open.size(), control_.threads,
                   [&](std::size_t i) { estimate_group(groups_[open[i]], outcomes[i]); });
    std::vector<Candidate> candidates;
    for (const Outcome& o : outcomes) {
      tally_.add(o.tally);
      result_.estimated += o.estimated;
      candidates.insert(candidates.end(), o.candidates.begin(), o.candidates.end());
      if (o.closest.index >= 0) closest_.offer(o.closest);
    }
    confirm(std::move(candidates));
  }

  void estimate_group(const Group& group, Outcome& out) const {
    Choice choice = group.choice;
    Plan plan = space_.plan_of(choice);
    const Passes passes = run_passes(model_, plan, calibration_.time);  // of all its members
    walk(space_, plan, choice, space_.work_fixed, space_.axes.size(), out.tally.by_axis, [&] {
      const Estimate e = estimate(model_, plan, passes, calibration_, ReservedMemory::ratio);
      ++out.estimated;
      const std::int64_t index = space_.index_of(choice);
      const std::int64_t lacks = lacking(plan, e.allocated.point);
      if (lacks > 0) {
        ++out.tally.of(Rule::gpu);
        out.closest.offer({lacks, index, space_.axes.size()});
      } else if (e.verdict.host.fit == Fit::does_not_fit) {
        ++out.tally.of(Rule::host);
      } else if (e.verdict.nvme.fit == Fit::does_not_fit) {
        ++out.tally.of(Rule::nvme);
      } else if (e.time.step_seconds > longest_step(plan, goal_)) {
        ++out.tally.of(Rule::limit);
      } else {
        out.candidates.push_back(
            {index,
             score_of(plan, e.time.step_seconds, e.allocated.point + group.states.overhead_bytes)});
      }
    });
  }

  /// Simulates the allocator for those that nothing on the front beats, a few at a time: the most
  /// promising first, and none that another of the few would beat.
  void confirm(std::vector<Candidate> open) {
    std::sort(open.begin(), open.end(), [&](const Candidate& a, const Candidate& b) {
      return better(goal_.objective, a.score, a.index, b.score, b.index);
    });
    while (!open.empty()) {
      const auto beaten =
          std::erase_if(open, [&](const Candidate& c) { return front_.beats(c.score, c.index); });
      tally_.of(Rule::beaten) += static_cast<std::int64_t>(beaten);
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
    for_each_index(few.size(), control_.threads, [&](std::size_t i) {
      const Plan plan = space_.plan_of(space_.choice_at(few[i].index));
      estimates[i] = estimate(model_, plan, calibration_);
    });
    result_.simulated += static_cast<std::int64_t>(few.size());
    for (std::size_t i = 0; i < few.size(); ++i) {
      if (!estimates[i].verdict.fits) {
        ++tally_.of(Rule::allocator);
        closest_.offer(
            {std::max<std::int64_t>(0, estimates[i].device.upper - estimates[i].usable_bytes),
             few[i].index, space_.axes.size()});
        continue;
      }
      const std::size_t before = front_.entries().size();
      front_.admit({few[i].index, few[i].score, std::move(estimates[i])});
      tally_.of(Rule::beaten) += static_cast<std::int64_t>(before + 1 - front_.entries().size());
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
      return better(goal_.objective, a.score, a.index, b.score, b.index);
    });
    for (FrontEntry& e : entries) result_.front.push_back(found(e.index, std::move(e.estimate)));
    if (result_.front.empty() && !result_.interrupted) explain_nothing();
    return std::move(result_);
  }

  void explain_nothing() {
    if (tally_.of(Rule::limit) + tally_.of(Rule::compute_limit) > 0) {
      Goal free = goal_;
      free.limits = {};
      SearchResult without = search(model_, space_, free, calibration_, control_);
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
    miss.plan = found(index, estimate(model_, plan, calibration_));
    miss.fixes = find_fixes(model_, plan, miss.plan.estimate, calibration_);
    miss.enough_gpus = fewest_gpus(model_, plan, calibration_).value;
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
          estimate(model_, plan, calibration_, ReservedMemory::ratio).allocated.point;
      if (least >= 0 && bytes >= least) return;
      least = bytes;
      best = space_.index_of(choice);
    });
    return best;
  }

  const Model& model_;
  const SearchSpace& space_;
  const Goal& goal_;
  const Calibration& calibration_;
  const SearchControl& control_;
  Tally tally_;
  std::vector<Group> groups_;
  Front front_;
  Closest closest_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Model& model, const SearchSpace& space, const Goal& goal,
                    const Calibration& calibration, const SearchControl& control) {
  return Searcher(model, space, goal, calibration, control).run();
}

}  // namespace shardplan
