#include "questions/verdicts.h"

#include <algorithm>

#include "optimizers/description.h"
#include "questions/accuracy.h"
#include "questions/estimate_job.h"

namespace shardplan {
namespace {

/// FNV-1a: the same on every machine.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

/// Bytes that the run's process had beside the allocator's; as predicted where nobody read them, or
/// where it had communicators that the job does not need.
double beside(const Record& record, const Range& device, const Range& reserved) {
  const auto measured = record.measured[index_of(Figure::device)];
  if (measured && !record.connected)
    return *measured - *record.measured[index_of(Figure::reserved)];
  return static_cast<double>(device.point - reserved.point);
}

/// Whether states are in managed memory: the driver moves what has no room, so that nobody knows
/// with how little the run dies.
bool pages(const Optimizer& optimizer) {
  const auto& states = optimizer.kind->states;
  return std::any_of(states.begin(), states.end(), [](const State& s) { return s.paged_from > 0; });
}

/// The job on GPUs of which a process can have so many bytes.
Job limited(const Record& record, std::int64_t usable) {
  Job job = record.job;
  job.plan.cluster.gpu.usable = Bytes(usable);
  if (job.rlhf)
    for (Role& role : job.rlhf->roles) role.plan.cluster.gpu.usable = Bytes(usable);
  return job;
}

void add(VerdictCount& sum, const Comparison& c) {
  const LimitVerdict& v = *c.at_limit;
  ++sum.runs;
  sum.fits += v.fit == Fit::fits ? 1 : 0;
  sum.tight += v.fit == Fit::tight ? 1 : 0;
  sum.refused += v.fit == Fit::does_not_fit ? 1 : 0;
  sum.wrongly_fit += v.wrongly_fits() ? 1 : 0;
  sum.wrongly_refused += v.wrongly_refused() ? 1 : 0;
  if (v.wrongly_fits() || v.wrongly_refused()) sum.wrong.push_back(c.name);
}

}  // namespace

double limit_offset(std::string_view name) {
  return kLimitOffsets[hash_of(name) % kLimitOffsets.size()];
}

std::optional<LimitVerdict> verdict_at_limit(const Record& record, const Range& device,
                                             const Range& reserved,
                                             const Calibration& calibration) {
  LimitVerdict v;
  v.offset = limit_offset(record.name);
  const auto most = record.measured[index_of(Figure::reserved)];
  const auto live = record.measured[index_of(Figure::allocated_peak)];
  if (!most || !live) return std::nullopt;
  if (!v.runs() && pages(record.job.plan.optimizer)) return std::nullopt;
  const double needed = (v.runs() ? *most : *live) + beside(record, device, reserved);
  const auto usable = static_cast<std::int64_t>(needed * (1 + v.offset));
  v.fit = estimate_job(limited(record, usable), calibration).verdict.gpu.fit;
  return v;
}

std::vector<VerdictCount> verdict_counts(const std::vector<Comparison>& comparisons) {
  std::vector<VerdictCount> counts;
  VerdictCount all{.name = "all"};
  for (const Comparison& c : comparisons) {
    if (!c.at_limit) continue;
    auto group = std::find_if(counts.begin(), counts.end(),
                              [&](const VerdictCount& v) { return v.name == c.framework; });
    if (group == counts.end()) group = counts.insert(group, VerdictCount{.name = c.framework});
    add(*group, c);
    add(all, c);
  }
  counts.push_back(std::move(all));
  return counts;
}

}  // namespace shardplan
