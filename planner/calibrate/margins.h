// How far runs pass their estimates: quantiles over records, for the bounds of a calibration.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimate/margins.h"
#include "questions/accuracy.h"

namespace shardplan {

/// Every second record of each framework's regime, by name: those that margins are fitted to. The
/// others judge them (coverage.h). Records without a simulated allocator are in neither.
std::vector<const Comparison*> fit_half(const std::vector<Comparison>& comparisons);

/// Those of these names: margins that a changed allocator calls for can be fitted to the same
/// records, so that all that came later go on judging.
std::vector<const Comparison*> those_named(const std::vector<Comparison>& comparisons,
                                           const std::vector<std::string>& names);

/// Those of these names, but for one framework's regime every second of its records of today: where
/// its runs are of more kinds than those that its margin was fitted to.
std::vector<const Comparison*> those_renewed(const std::vector<Comparison>& comparisons,
                                             const std::vector<std::string>& names,
                                             std::string_view framework, AllocatorRegime regime);

/// For each regime the margin for all frameworks, and one for each framework that has enough runs
/// of its own. A margin is the smallest ratio that kMarginLevel of n + 1 runs do not pass, the next
/// run among them (split conformal prediction); of few runs it is the largest ratio. A regime with
/// hardly any runs takes the widest margin of all.
std::vector<Margin> fit_margins(const std::vector<const Comparison*>& runs);

/// How far off the steps of each kind are, rounded to a thousandth; kinds in the order of their
/// names.
std::vector<StepError> step_errors(const std::vector<Comparison>& runs);

/// By framework, the features of the runs whose states between steps, or whose model where there
/// are no steps, took the bytes that were counted; in the order of their names.
std::vector<Confirmed> confirmed_features(const std::vector<Comparison>& runs);

}  // namespace shardplan
