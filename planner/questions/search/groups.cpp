#include "questions/search/groups.h"

#include <algorithm>
#include <exception>
#include <map>
#include <numeric>
#include <optional>

#include "base/diagnostic.h"
#include "questions/workers.h"

namespace shardplan {
namespace {

// So many plans of a batch: more share the run of their passes, fewer keep all threads at work.
constexpr std::size_t kBatch = 256;

/// Numbers the passes that plans have.
class PassNumbers {
 public:
  std::int32_t of(const Plan& plan) {
    return numbers_.emplace(pass_key(plan), static_cast<std::int32_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::map<PassKey, std::int32_t> numbers_;
};

/// A choice of the axes that decide what stays in memory.
struct Root {
  std::int64_t first = 0;  ///< candidate: the axes behind are at value 0
  std::int32_t passes = 0;
  StatesBound states;
  std::exception_ptr refusal;
};

/// A group while it is bounded.
struct Open {
  std::int64_t first = 0;
  std::int32_t passes = 0;
  const Root* root = nullptr;
  Score score;
  std::optional<RuledOutBy> rule;
  std::int64_t lacks = 0;
};

template <typename Item>
std::vector<std::vector<std::size_t>> batches(const std::vector<Item>& items) {
  std::vector<std::int32_t> passes;
  passes.reserve(items.size());
  for (const Item& item : items) passes.push_back(item.passes);
  return batches_of(passes);
}

class GroupFinder {
 public:
  GroupFinder(const SearchInput& input, Tally& tally, Closest& closest)
      : input_(input), space_(input.space), tally_(tally), closest_(closest) {}

  std::vector<CandidateGroup> run() {
    find_roots();
    report();
    bound_roots();
    open_groups();
    report();
    bound_groups();
    return close();
  }

 private:
  void report() const {
    if (input_.control.progress) input_.control.progress({tally_.total(), space_.size(), 0});
  }

  void find_roots() {
    Plan plan = space_.base;
    Choice choice(space_.axes.size(), 0);
    PassNumbers numbers;
    walk(space_, plan, choice, 0, space_.states_fixed, tally_.by_axis, [&] {
      const std::int32_t passes = numbers.of(lightest_member(space_, plan));
      std::fill(choice.begin() + static_cast<std::ptrdiff_t>(space_.states_fixed), choice.end(), 0);
      roots_.push_back({space_.index_of(choice), passes, {}, nullptr});
    });
  }

  void bound_roots() {
    const auto shared = batches(roots_);
    for_each_index(shared.size(), input_.control.threads, [&](std::size_t b) {
      std::optional<Passes> passes;
      for (const std::size_t r : shared[b]) {
        if (input_.stopped()) return;
        Root& root = roots_[r];
        const Plan plan = lightest_member(space_, space_.plan_of(space_.choice_at(root.first)));
        const Model& model = input_.models.of(plan);
        try {
          if (!passes) passes = run_passes(model, plan, input_.calibration.time);
          root.states = states_bound(model, plan, *passes, input_.calibration);
        } catch (const InputError&) {
          root.refusal = std::current_exception();
        }
      }
    });
    refuse_if_all();
  }

  /// Where no plan can be had the first refusal says why.
  void refuse_if_all() const {
    const bool all =
        !roots_.empty() && std::all_of(roots_.begin(), roots_.end(),
                                       [](const Root& r) { return r.refusal != nullptr; });
    if (all) std::rethrow_exception(roots_.front().refusal);
  }

  std::optional<RuledOutBy> ruled_out(const Plan& plan, const Root& root) const {
    const StatesBound& states = root.states;
    if (root.refusal) return RuledOutBy::refused;
    if (states.ranks.empty()) return RuledOutBy::not_reached;
    if (input_.lacking(plan, states.parameter_bytes) > 0) return RuledOutBy::parameters;
    if (input_.lacking(plan, states.resident_bytes) > 0) return RuledOutBy::states;
    if (states.host == Fit::does_not_fit) return RuledOutBy::host_states;
    if (states.nvme == Fit::does_not_fit) return RuledOutBy::nvme_states;
    return std::nullopt;
  }

  /// The groups below the roots that nothing rules out.
  void open_groups() {
    PassNumbers numbers;
    for (const Root& root : roots_) {
      Choice choice = space_.choice_at(root.first);
      Plan plan = space_.plan_of(choice);
      if (const auto rule = ruled_out(plan, root)) {
        tally_.of(*rule) += space_.below(space_.states_fixed);
        if (*rule != RuledOutBy::refused && *rule != RuledOutBy::not_reached)
          closest_.offer(
              {input_.lacking(plan, root.states.resident_bytes) + root.states.off_gpu_excess,
               root.first, space_.states_fixed});
        continue;
      }
      walk(space_, plan, choice, space_.states_fixed, space_.work_fixed, tally_.by_axis, [&] {
        std::fill(choice.begin() + static_cast<std::ptrdiff_t>(space_.work_fixed), choice.end(), 0);
        open_.push_back({space_.index_of(choice), numbers.of(plan), &root, {}, std::nullopt, 0});
      });
    }
  }

  void bound_groups() {
    const auto shared = batches(open_);
    for_each_index(shared.size(), input_.control.threads, [&](std::size_t b) {
      std::optional<Passes> passes;
      LeastPasses least;
      for (const std::size_t g : shared[b]) {
        if (input_.stopped()) return;
        const Plan plan = space_.plan_of(space_.choice_at(open_[g].first));
        if (!passes) {
          passes = run_passes(input_.models.of(plan), plan, input_.calibration.time);
          least = least_passes(*passes);
        }
        bound(open_[g], plan, *passes, least);
      }
    });
  }

  void bound(Open& group, const Plan& plan, const Passes& passes, const LeastPasses& least) const {
    const StatesBound& states = group.root->states;
    const WorkBound work =
        work_bound(least_work(plan, passes, least, input_.calibration.time), states);
    group.lacks = input_.lacking(plan, work.allocated_bytes);
    if (group.lacks > 0)
      group.rule = RuledOutBy::activations;
    else if (work.step_seconds > longest_step(plan, input_.goal))
      group.rule = RuledOutBy::compute_limit;
    group.score = score_of(plan, work.step_seconds, work.allocated_bytes + states.overhead_bytes);
  }

  std::vector<CandidateGroup> close() {
    std::vector<CandidateGroup> groups;
    for (const Open& g : open_) {
      if (g.rule) tally_.of(*g.rule) += space_.below(space_.work_fixed);
      if (g.rule == RuledOutBy::activations) closest_.offer({g.lacks, g.first, space_.work_fixed});
      if (!g.rule) groups.push_back({g.first, g.passes, g.score});
    }
    return groups;
  }

  const SearchInput& input_;
  const SearchSpace& space_;
  Tally& tally_;
  Closest& closest_;
  std::vector<Root> roots_;
  std::vector<Open> open_;
};

}  // namespace

std::int64_t SearchInput::lacking(const Plan& plan, std::int64_t allocated) const {
  return std::max<std::int64_t>(
      0, least_device_upper(plan, calibration, allocated) - plan.cluster.gpu.usable.count());
}

std::vector<CandidateGroup> find_groups(const SearchInput& input, Tally& tally, Closest& closest) {
  return GroupFinder(input, tally, closest).run();
}

std::vector<std::vector<std::size_t>> batches_of(const std::vector<std::int32_t>& passes) {
  std::vector<std::size_t> order(passes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return passes[a] < passes[b]; });
  std::vector<std::vector<std::size_t>> all;
  for (const std::size_t i : order) {
    const bool joins =
        !all.empty() && passes[all.back().front()] == passes[i] && all.back().size() < kBatch;
    if (!joins) all.emplace_back();
    all.back().push_back(i);
  }
  return all;
}

}  // namespace shardplan
