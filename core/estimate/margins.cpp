#include "estimate/margins.h"

#include <algorithm>
#include <optional>

#include "frameworks/registry.h"
#include "simulator/block_script.h"

namespace shardplan {
std::string step_kind(const Plan& plan) {
  if (plan.workload.kind == WorkKind::inference)
    return std::string(kRegimeNames[static_cast<std::size_t>(AllocatorRegime::generation)]);
  if (plan.workload.kind == WorkKind::rlhf) return "iteration";
  std::string kind(traits_of(plan).name);
  const ZeroOptions* zero = zero_options(plan);
  if (zero != nullptr) kind += " stage " + std::to_string(zero->stage);
  return kind;
}

const StepError* step_error_of(const std::vector<StepError>& errors, const Plan& plan) {
  const auto found =
      std::find_if(errors.begin(), errors.end(),
                   [kind = step_kind(plan)](const StepError& e) { return e.kind == kind; });
  return found == errors.end() ? nullptr : &*found;
}

namespace {

bool keeps_copies(const Program& program) {
  const auto copies = [](const Event& e) {
    return e.kind == Event::Kind::copy ||
           (e.kind == Event::Kind::collective && e.group == Group::shard);
  };
  return std::any_of(program.events.begin(), program.events.end(), copies);
}

/// How many tokens a router sends here, and how long a message holds a block that its sender let
/// go, is not this rank's to decide.
bool hangs_on_other_ranks(const Plan& plan) {
  const FrameworkTraits& traits = traits_of(plan);
  if (plan.parallel.pipeline > 1 && traits.frees_sent) return true;
  if (plan.parallel.expert == 1) return false;
  switch (traits.experts(plan)) {
    case ExpertExchange::dispatcher:
    case ExpertExchange::autoep:
    case ExpertExchange::reordered:
      return true;
    case ExpertExchange::slots:
    case ExpertExchange::gathered:
    case ExpertExchange::same_tokens:
      break;
  }
  return false;
}

}  // namespace

AllocatorRegime regime_of(const Plan& plan, const Program& program) {
  switch (plan.workload.kind) {
    case WorkKind::inference:
      return AllocatorRegime::generation;
    case WorkKind::rlhf:
      return AllocatorRegime::iterations;
    case WorkKind::train:
      break;
  }
  // TRL's hooks hold what they send and bring until events of their streams have passed.
  if (plan.activation_offloading == ActivationOffloading::streams)
    return AllocatorRegime::offloading;
  if (!waits_for_streams(program))
    return hangs_on_other_ranks(plan) ? AllocatorRegime::exchanged : AllocatorRegime::steady;
  return keeps_copies(program) ? AllocatorRegime::copies : AllocatorRegime::streams;
}

const Margin& margin_of(const std::vector<Margin>& margins, std::string_view framework,
                        AllocatorRegime regime) {
  static const Margin kNoMargin;
  const Margin* found = &kNoMargin;
  for (const Margin& m : margins) {
    if (m.regime != regime) continue;
    if (m.framework == framework) return m;
    if (m.framework.empty()) found = &m;
  }
  return *found;
}

double least_ratio(const std::vector<Margin>& margins, std::string_view framework) {
  std::optional<double> least;
  for (const Margin& m : margins)
    if (m.framework.empty() || m.framework == framework)
      least = std::min({least.value_or(m.reserved), m.reserved, m.allocated});
  return least.value_or(1);
}

}  // namespace shardplan
