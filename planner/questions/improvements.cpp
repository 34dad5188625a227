#include "questions/improvements.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/checked.h"
#include "checkpointing/problems.h"
#include "frameworks/registry.h"
#include "parallel/problem.h"
#include "questions/estimate_job.h"
#include "questions/host_changes.h"
#include "questions/training_changes.h"
#include "questions/workers.h"

namespace shardplan {
namespace {

/// A larger micro-batch. Accumulation makes up for it where it can, so that a step stays what it
/// is; where there is too little of it, a step has more samples.
void add_micro_batches(std::vector<Change>& changes, const Workload& w) {
  for (std::int64_t times = 2; times <= 64; times *= 2) {
    const std::int64_t micro = checked_mul(w.micro_batch, times);
    const std::int64_t accumulation = std::max<std::int64_t>(1, w.gradient_accumulation / times);
    std::string what =
        w.gradient_accumulation == 1 ? fmt::format("micro-batch {}", micro)
        : accumulation == 1
            ? fmt::format("micro-batch {} without accumulation", micro)
            : fmt::format("micro-batch {} with {} accumulation steps", micro, accumulation);
    changes.push_back(other_micro_batch(std::move(what), micro, accumulation));
  }
}

void add_without_checkpointing(std::vector<Change>& changes, const Plan& plan) {
  if (plan.checkpointing == Checkpointing::none) return;
  changes.push_back({"no activation checkpointing", "--checkpointing none",
                     [](Plan& p) { p.set_checkpointing({}); }, "checkpointing"});
}

/// States back on the GPUs, and fewer of them divided.
void add_nearer_states(std::vector<Change>& changes, const Plan& plan) {
  for (Change& change : less_on_hosts(plan)) changes.push_back(std::move(change));
  const ZeroOptions* zero = zero_options(plan);
  if (zero == nullptr || zero->offload_param.device != OffloadDevice::none) return;
  for (int stage = zero->stage - 1; stage >= 1; --stage)
    changes.push_back({fmt::format("ZeRO stage {}", stage),
                       fmt::format("zero_optimization.stage: {}", stage),
                       [stage](Plan& p) { set_zero_stage(p, stage); }, "stage"});
}

/// Fused kernels and torch.compile are no other result, and save time as well as memory.
void add_kernels(std::vector<Change>& changes, const Job& job, const Json& written) {
  for (Change& change : training_changes(job, written))
    if (change.subject == "kernels") changes.push_back(std::move(change));
}

void add_batches(std::vector<Change>& changes, const Workload& w) {
  for (std::int64_t times = 2; times <= 64; times *= 2) {
    const std::int64_t batch = checked_mul(w.micro_batch, times);
    changes.push_back({fmt::format("a batch of {}", batch),
                       fmt::format("workload.batch: {}", batch),
                       nullptr,
                       "batch",
                       {{"/workload/batch", batch}}});
  }
}

std::vector<Change> heavier_changes(const Job& job, const Json& written) {
  std::vector<Change> changes;
  if (job.plan.workload.kind == WorkKind::train) {
    add_micro_batches(changes, job.plan.workload);
    add_without_checkpointing(changes, job.plan);
    add_nearer_states(changes, job.plan);
    add_kernels(changes, job, written);
  } else {
    add_batches(changes, job.plan.workload);
  }
  return changes;
}

/// Nothing where the job cannot be had with the change.
std::optional<Fix> improvement(const Job& job, const WrittenJob& written, const Estimate& now,
                               const Calibration& calibration, const Change& change) {
  try {
    const Job other = changed_job(job, written, {change});
    if (division_problem(other.model, other.plan)) return std::nullopt;
    if (checkpointing_problem(other.model, other.plan)) return std::nullopt;
    Estimate after = estimate_job(other, calibration);
    if (!after.verdict.fits || after.time.tokens_per_second <= 0) return std::nullopt;
    const double slowdown = now.time.tokens_per_second / after.time.tokens_per_second;
    if (slowdown > kLeastGain) return std::nullopt;
    const std::int64_t saved = now.device.point - after.device.point;
    return Fix{
        .changes = {change}, .after = std::move(after), .gpu_saved = saved, .slowdown = slowdown};
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const OverflowError&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<Fix> find_improvements(const Job& job, const WrittenJob& written, const Estimate& now,
                                   const Calibration& calibration, const Effort& effort) {
  if (!now.verdict.fits || job.rlhf || now.time.tokens_per_second <= 0) return {};
  const std::vector<Change> changes = heavier_changes(job, written.json);
  std::vector<std::optional<Fix>> tried(changes.size());
  for_each_index(changes.size(), effort.threads, [&](std::size_t i) {
    if (!effort.stop.stop_requested())
      tried[i] = improvement(job, written, now, calibration, changes[i]);
  });
  if (effort.stop.stop_requested()) return {};
  std::vector<Fix> found;
  for (std::optional<Fix>& fix : tried)
    if (fix) found.push_back(std::move(*fix));
  std::stable_sort(found.begin(), found.end(),
                   [](const Fix& a, const Fix& b) { return a.slowdown < b.slowdown; });
  std::set<std::string> subjects;  // of each the best is kept
  std::erase_if(
      found, [&](const Fix& fix) { return !subjects.insert(fix.changes.front().subject).second; });
  if (found.size() > effort.most) found.resize(effort.most);
  return found;
}

}  // namespace shardplan
