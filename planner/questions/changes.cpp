#include "questions/changes.h"

#include <fmt/format.h>

#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "job/fields.h"

namespace shardplan {
namespace {

void add_stages(std::vector<Change>& changes, const Plan& plan) {
  const ZeroOptions* zero = zero_options(plan);
  const int now = zero != nullptr ? zero->stage : -1;
  if (plan.cluster.world() == 1 || !planning_of(plan).moves_to_zero) return;
  for (int stage = std::max(now + 1, 1); stage <= 3; ++stage)
    changes.push_back({fmt::format("ZeRO stage {}", stage),
                       fmt::format("zero_optimization.stage: {}", stage),
                       [stage](Plan& p) { set_zero_stage(p, stage); }, "stage"});
}

void add_batch(std::vector<Change>& changes, const Plan& plan) {
  const Workload& w = plan.workload;
  for (const std::int64_t micro : {w.micro_batch / 2, std::int64_t{1}}) {
    if (micro < 1 || micro >= w.micro_batch) continue;
    const std::int64_t accumulation = w.gradient_accumulation * (w.micro_batch / micro);
    changes.push_back(
        {fmt::format("micro-batch {} with {} accumulation steps", micro, accumulation),
         fmt::format("train_micro_batch_size_per_gpu: {}, gradient_accumulation_steps: {}", micro,
                     accumulation),
         [micro, accumulation](Plan& p) {
           p.workload.micro_batch = micro;
           p.workload.gradient_accumulation = accumulation;
         },
         "batch"});
    if (micro == 1) break;
  }
  if (w.sequence_length >= 1024) {
    const std::int64_t half = w.sequence_length / 2;
    changes.push_back({fmt::format("sequences of {} tokens", half),
                       fmt::format("workload.sequence_length: {}", half),
                       [half](Plan& p) { p.workload.sequence_length = half; },
                       "sequence",
                       {},
                       Sacrifice::samples});
  }
}

}  // namespace

Json with_fields(Json job, const std::vector<Change>& changes) {
  for (const Change& change : changes)
    for (const FieldEdit& edit : change.fields) set_field(job, edit.pointer, edit.value);
  return job;
}

std::vector<Change> lighter_changes(const Model& model, const Plan& plan) {
  std::vector<Change> changes;
  if (plan.checkpointing == Checkpointing::none && !model.segments.empty())
    changes.push_back({"activation checkpointing on every block",
                       "gradient_checkpointing_enable(), or --checkpointing full",
                       [](Plan& p) { p.checkpointing = Checkpointing::full; }, "checkpointing"});
  add_stages(changes, plan);
  planning_of(plan).lighter(changes, model, plan);
  add_batch(changes, plan);
  planning_of(plan).offloads(changes, plan);
  return changes;
}

}  // namespace shardplan
