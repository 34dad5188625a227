#include "report/findings.h"

#include <utility>

#include "estimate/ranks.h"
#include "json/document.h"
#include "load/hardware.h"
#include "lowering/pipeline/stages.h"
#include "lowering/rank_model.h"
#include "lowering/rlhf/lower.h"
#include "questions/estimate_job.h"

namespace shardplan::report {
namespace {

/// What is asked of a training step alone.
void ask_training(Findings& f, const Model& model, const Plan& plan) {
  f.ranks = estimate_ranks(model, plan, f.calibration);
  if (plan.parallel.pipeline > 1)
    f.blocks_of_chunks = blocks_of_chunks(RankModel(model, plan).model(), plan.parallel);
}

/// Most changes are fields of what was written; of a plan alone there are those of training.
std::vector<Fix> fixes_of(const Job& job, const Origin& origin, const Estimate& now,
                          const Calibration& calibration) {
  const Effort shown{.most = 8};
  if (origin.job.empty()) return find_fixes(job.model, job.plan, now, calibration, shown);
  const HardwareCatalog hardware = load_hardware_catalog();
  return find_fixes(job,
                    {parse_json(origin.job, origin.name),
                     origin.name,
                     {.hardware = &hardware, .directory = origin.directory}},
                    now, calibration, shown);
}

}  // namespace

Findings find_out(Job job, const Calibration& calibration, const MeasuredRuns& runs,
                  Origin origin) {
  const Model& model = job.model;
  const Plan& plan = job.plan;
  Findings f;
  f.calibration = calibration;
  require_steps(job, "report", origin.name);
  f.estimate = estimate_job(job, calibration);
  f.ranks = {f.estimate};
  f.cost = cost_of(model, plan, f.estimate, {});
  f.timeline = memory_timeline(job.rlhf ? lower_rlhf(*job.rlhf) : worst_program(model, plan));
  f.alternatives = compare_plans(job, calibration);
  switch (plan.workload.kind) {
    case WorkKind::train:
      ask_training(f, model, plan);
      f.like = find_similar_records(plan, runs);  // records are of training
      break;
    case WorkKind::inference:
      f.capacities = batches_that_fit(model, plan, calibration);
      break;
    case WorkKind::rlhf:
      break;
  }
  f.fixes = fixes_of(job, origin, f.estimate, calibration);
  f.job = std::move(job);
  f.origin = std::move(origin);
  return f;
}

}  // namespace shardplan::report
