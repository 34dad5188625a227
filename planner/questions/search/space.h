// The space of a search: axes, each a thing to choose, and every combination of their values.
//
// A new degree of freedom is one more Axis with the rules that set it against the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace shardplan {

/// A reason that needs no estimate: it looks at the plan with this axis and those before it set.
struct AxisRule {
  std::string sentence;  ///< "DeepSpeed offloads parameters at ZeRO stage 3 only"
  std::string against;   ///< what it sets this axis against, as a flag: "--zero-stages"
  std::function<bool(const Plan&, std::size_t value)> rules_out;
};

struct Axis {
  std::string name;                 ///< "micro_batch"
  std::string flag;                 ///< "--micro-batches"
  std::vector<std::string> values;  ///< as shown, and as flags say them
  std::vector<std::string> labels;  ///< in windows: "on the host"; empty: as `values`
  /// Sets everything that the axis decides, whatever was there; called in the order of the axes.
  std::function<void(Plan&, std::size_t value)> apply;
  std::vector<AxisRule> rules;
};

using Choice = std::vector<std::size_t>;  ///< a value for each axis, or for the first few

struct SearchSpace {
  Plan base;
  std::vector<Axis> axes;
  /// So many axes decide what stays in memory between steps. For the others, value 0 is the one
  /// that needs least.
  std::size_t states_fixed = 0;
  std::size_t work_fixed = 0;  ///< and so many decide activations and computation

  std::int64_t size() const { return below(0); }
  /// Combinations of the axes from `depth` on.
  std::int64_t below(std::size_t depth) const;
  /// Where a full choice stands in the order of all of them: the last axis runs fastest.
  std::int64_t index_of(const Choice& choice) const;
  Choice choice_at(std::int64_t index) const;
  Plan plan_of(const Choice& choice) const;
};

/// What the rules of axes have ruled out: [axis][rule], in candidates.
using RuleCounts = std::vector<std::vector<std::int64_t>>;
RuleCounts no_counts(const SearchSpace& space);

/// Visits the choices of axes [from, to) under choice[0, from) that no rule of theirs rules out,
/// in order, with the plan they make; what is ruled out is counted, with all that lies below it.
void walk(const SearchSpace& space, Plan& plan, Choice& choice, std::size_t from, std::size_t to,
          RuleCounts& counts, const std::function<void()>& visit);

}  // namespace shardplan
