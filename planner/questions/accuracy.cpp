#include "questions/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "estimate/confirmed.h"
#include "estimate/nccl_memory.h"
#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "load/calibration.h"
#include "questions/estimate_job.h"
#include "questions/workers.h"
#include "timing/measured_host.h"

namespace shardplan {
namespace {

/// Of a phase that the job does not have, nothing.
Figures predictions(const Estimate& e) {
  Figures figures;
  const auto set = [&](Figure f, std::int64_t bytes) {
    figures[index_of(f)] = static_cast<double>(bytes);
  };
  const auto set_phase = [&](Phase phase, Figure peak, Figure end) {
    if (std::find(e.run.begin(), e.run.end(), phase) == e.run.end()) return;
    const PhaseBytes& bytes = e.phases[static_cast<std::size_t>(phase)];
    set(peak, bytes.peak);
    set(end, bytes.end);
  };
  set(Figure::model, e.model_bytes);
  set_phase(Phase::forward, Figure::forward_peak, Figure::forward_end);
  set_phase(Phase::backward, Figure::backward_peak, Figure::backward_end);
  set_phase(Phase::step, Figure::step_peak, Figure::step_end);
  set(Figure::allocated_peak, e.allocated.point);
  set(Figure::reserved, e.reserved.point);
  set(Figure::device, e.device.point);
  figures[index_of(Figure::step_seconds)] = e.time.step_seconds;
  return figures;
}

const std::string& group_of(const Comparison& c, AccuracyGroup by) {
  switch (by) {
    case AccuracyGroup::model:
      return c.model;
    case AccuracyGroup::precision:
      return c.precision;
    case AccuracyGroup::framework:
      break;
  }
  return c.framework;
}

/// Adds one error; means are sums until finish().
void add(ErrorSummary& s, std::optional<double> error, const std::string& name) {
  if (!error) return;
  ++s.count;
  s.mean_absolute += std::abs(*error);
  s.mean_signed += *error;
  if (!s.worst.empty() && std::abs(*error) <= std::abs(s.largest)) return;
  s.largest = *error;
  s.worst = name;
}

void finish(ErrorSummary& s) {
  if (s.count == 0) return;
  s.mean_absolute /= static_cast<double>(s.count);
  s.mean_signed /= static_cast<double>(s.count);
}

void add(GroupSummary& group, const Comparison& c) {
  ++group.records;
  for (std::size_t f = 0; f < kFigureCount; ++f)
    add(group.figures[f], relative_error(c.predicted[f], c.measured[f]), c.name);
}

void finish(GroupSummary& group) {
  for (ErrorSummary& s : group.figures) finish(s);
}

/// Nothing where the record has no step, or nobody timed its host between steps.
std::optional<double> step_seconds_as_timed(const Record& record, const Calibration& calibration) {
  if (!record.block_between_steps || !record.measured[index_of(Figure::step_seconds)])
    return std::nullopt;
  Calibration there = calibration;
  take_host(there.time.host, host_factor_between_steps(*record.block_between_steps));
  return estimate_job(record.job, there).time.step_seconds;
}

void add(HostSummary& s, const Comparison& c) {
  const std::optional<double> measured = c.measured[index_of(Figure::step_seconds)];
  const std::optional<double> predicted = c.predicted[index_of(Figure::step_seconds)];
  add(s.predicted, relative_error(predicted, measured), c.name);
  add(s.timed, relative_error(c.step_seconds_as_timed, measured), c.name);
  add(s.tokens_predicted, relative_error(measured, predicted), c.name);
  add(s.tokens_timed, relative_error(measured, c.step_seconds_as_timed), c.name);
}

std::string with_compiled(const std::string& group, bool compiled) {
  return compiled ? group + ", compiled" : group;
}

std::string_view kind_of(const Comparison& c) {
  if (c.compiled) return "compiled";
  return c.by_engine ? "eager engines" : "eager PyTorch";
}

/// Groups in the order of `a.groups`, then what several of them have in common, then all.
void add_hosts(Accuracy& a, AccuracyGroup by) {
  for (const GroupSummary& group : a.groups)
    for (const bool compiled : {false, true})
      a.hosts.push_back({with_compiled(group.name, compiled), {}, {}, {}, {}});
  for (const char* name : {"eager PyTorch", "eager engines", "compiled"})
    a.hosts.push_back({name, {}, {}, {}, {}});
  a.hosts.push_back({a.all.name, {}, {}, {}, {}});
  for (const Comparison& c : a.comparisons) {
    if (!c.step_seconds_as_timed) continue;
    const std::string group = with_compiled(group_of(c, by), c.compiled);
    for (HostSummary& s : a.hosts)
      if (s.name == group || s.name == kind_of(c) || s.name == a.all.name) add(s, c);
  }
  std::erase_if(a.hosts, [](const HostSummary& s) { return s.timed.count == 0; });
  for (HostSummary& s : a.hosts)
    for (ErrorSummary* errors : {&s.predicted, &s.timed, &s.tokens_predicted, &s.tokens_timed})
      finish(*errors);
}

void add_peers(Accuracy& a, const Comparison& c) {
  const std::size_t peak = index_of(Figure::allocated_peak);
  for (std::size_t i = 0; i < kPeerRules.size(); ++i) {
    if (!c.peers[i]) continue;
    add(a.peers[i], relative_error(static_cast<double>(*c.peers[i]), c.measured[peak]), c.name);
    add(a.ours_on_peers[i], relative_error(c.predicted[peak], c.measured[peak]), c.name);
  }
}

}  // namespace

std::string framework_group(const Plan& plan) {
  return planning_of(plan).group(plan);
}

std::optional<double> relative_error(std::optional<double> predicted,
                                     std::optional<double> measured) {
  if (!predicted || !measured || *measured == 0) return std::nullopt;
  return (*predicted - *measured) / *measured;
}

Comparison compare_with_record(const Record& record, const Calibration& calibration) {
  const Model& model = record.job.model;
  const Plan& plan = record.job.plan;
  Estimate e = estimate_job(record.job, calibration);
  if (record.connected) {
    const NcclOverhead& overhead = calibration.overhead_of(plan.framework.kind).nccl;
    const std::vector<Communicator> list = communicators(plan, e.rank);
    const std::int64_t more = nccl_bytes_at_most(list, overhead) - nccl_bytes(list, overhead);
    e.device.point += more;
    e.device.upper += more;
  }
  Comparison c;
  c.name = record.name;
  c.file = record.file;
  c.framework = framework_group(plan);
  c.model = model.facts.model_type;
  c.precision = plan.precision.name;
  c.step_kind = e.time.kind;
  c.compiled = plan.compile.has_value();
  c.by_engine = traits_of(plan).under_trainer == UnderTrainer::precision;
  c.predicted = predictions(e);
  c.measured = record.measured;
  c.step_seconds_as_timed = step_seconds_as_timed(record, calibration);
  c.reserved = e.reserved;
  c.device = e.device;
  c.neighbours = e.neighbours;
  c.held_at_most = e.held_at_most;
  c.reserved_over = e.reserved_over;
  c.framework_name = traits_of(plan).name;
  if (e.margin) c.regime = e.margin->regime;
  c.features = features_of(plan, e.host_per_node);
  for (std::size_t i = 0; i < kPeerRules.size(); ++i)
    c.peers[i] = kPeerRules[i].estimate(model, plan);
  return c;
}

GroupSummary summary_of(const std::vector<const Comparison*>& comparisons) {
  GroupSummary all;
  all.name = "all";
  for (const Comparison* c : comparisons) add(all, *c);
  finish(all);
  return all;
}

namespace {

/// Its comparison, with a verdict where bounds were not fitted to it; else why it has none.
std::variant<Comparison, Diagnostic> judged(const Record& record, const Calibration& calibration) {
  try {
    Comparison c = compare_with_record(record, calibration);
    const std::vector<std::string>& fitted = calibration.margin_records;
    if (std::find(fitted.begin(), fitted.end(), c.name) == fitted.end())
      c.at_limit = verdict_at_limit(record, c.device, c.reserved, calibration);
    return c;
  } catch (const InputError& error) {
    Diagnostic d = error.diagnostic();
    d.file = record.file;
    d.message = fmt::format("record '{}': {}", record.name, d.message);
    return d;
  }
}

}  // namespace

Accuracy compare_with_records(const RecordList& records, AccuracyGroup by) {
  const Calibration calibration = load_calibration();
  Accuracy a;
  a.bad = records.bad;
  a.bound_records = calibration.margin_records;
  std::vector<std::variant<Comparison, Diagnostic>> outcomes(records.records.size());
  for_each_index(outcomes.size(), 0,
                 [&](std::size_t i) { outcomes[i] = judged(records.records[i], calibration); });
  for (std::variant<Comparison, Diagnostic>& outcome : outcomes) {
    if (auto* comparison = std::get_if<Comparison>(&outcome))
      a.comparisons.push_back(std::move(*comparison));
    else
      a.bad.push_back(std::move(std::get<Diagnostic>(outcome)));
  }
  a.all.name = "all";
  for (const Comparison& c : a.comparisons) {
    const std::string& name = group_of(c, by);
    auto group = std::find_if(a.groups.begin(), a.groups.end(),
                              [&](const GroupSummary& g) { return g.name == name; });
    if (group == a.groups.end()) group = a.groups.insert(group, GroupSummary{name, 0, {}});
    add(*group, c);
    add(a.all, c);
    add_peers(a, c);
  }
  for (GroupSummary& group : a.groups) finish(group);
  finish(a.all);
  add_hosts(a, by);
  for (ErrorSummary& s : a.peers) finish(s);
  for (ErrorSummary& s : a.ours_on_peers) finish(s);
  return a;
}

}  // namespace shardplan
