#include "report/findings.h"

#include <utility>

#include "estimate/ranks.h"

namespace shardplan::report {

Findings find_out(Job job, const Calibration& calibration, const RecordList& records,
                  Origin origin) {
  const Model& model = job.model;
  const Plan& plan = job.plan;
  Findings f;
  f.estimate = estimate(model, plan, calibration);
  f.ranks = estimate_ranks(model, plan, calibration);
  f.timeline = memory_timeline(worst_program(model, plan));
  f.alternatives = compare_stages(model, plan, calibration);
  f.fixes = find_fixes(model, plan, f.estimate, calibration);
  f.like = find_like_records(plan, records);
  f.job = std::move(job);
  f.calibration = calibration;
  f.origin = std::move(origin);
  return f;
}

}  // namespace shardplan::report
