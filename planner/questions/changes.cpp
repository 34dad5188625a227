#include "questions/changes.h"

#include <fmt/format.h>

#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "job/fields.h"
#include "questions/tile_changes.h"

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

Change checkpointed(std::string what, std::string how, const CheckpointChoice& choice) {
  return {std::move(what), std::move(how), [choice](Plan& p) { p.set_checkpointing(choice); },
          "checkpointing"};
}

void add_batch(std::vector<Change>& changes, const Model& model, const Plan& plan) {
  const Workload& w = plan.workload;
  for (const std::int64_t micro : {w.micro_batch / 2, std::int64_t{1}}) {
    if (micro < 1 || micro >= w.micro_batch) continue;
    const std::int64_t accumulation = w.gradient_accumulation * (w.micro_batch / micro);
    changes.push_back(other_micro_batch(
        fmt::format("micro-batch {} with {} accumulation steps", micro, accumulation), micro,
        accumulation));
    if (micro == 1) break;
  }
  const std::int64_t half = w.sequence_length / 2;
  const std::int64_t images = checked_mul(w.images.per_sample, model.facts.image.tokens);
  if (w.sequence_length >= 1024 && half > images) {
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

Change other_micro_batch(std::string what, std::int64_t micro, std::int64_t accumulation) {
  return {std::move(what),
          fmt::format("train_micro_batch_size_per_gpu: {}, gradient_accumulation_steps: {}", micro,
                      accumulation),
          [micro, accumulation](Plan& p) {
            p.workload.micro_batch = micro;
            p.workload.gradient_accumulation = accumulation;
          },
          "batch"};
}

Change first_blocks(std::int64_t count) {
  return checkpointed(fmt::format("activation checkpointing on the first {} blocks", count),
                      fmt::format("--checkpointing blocks:{}", count),
                      {Checkpointing::blocks, {.count = count}});
}

std::vector<Change> finer_checkpointing(const Model& model, const Plan& plan) {
  if (model.segments.empty()) return {};
  if (plan.checkpointing == Checkpointing::none)
    return {checkpointed("selective checkpointing, with every second product computed again",
                         "--checkpointing selective_op:2",
                         {Checkpointing::selective_op, {.every = kUsualProductShare}}),
            {"what autograd keeps on the host",
             "activation_offloading: true in TRL and axolotl; --activation-offloading streams",
             [](Plan& p) { p.activation_offloading = ActivationOffloading::streams; },
             "checkpointing"}};
  if (plan.checkpointing == Checkpointing::full && !plan.checkpoint_share.offload)
    return {checkpointed("the inputs of checkpointed blocks on the host",
                         "gradient_checkpointing_enable(offload=True), or "
                         "--checkpointing full+offload",
                         {Checkpointing::full, {.offload = true}})};
  return {};
}

std::vector<Change> lighter_changes(const Model& model, const Plan& plan) {
  std::vector<Change> changes;
  if (plan.checkpointing == Checkpointing::none && !model.segments.empty())
    changes.push_back(checkpointed("activation checkpointing on every block",
                                   "gradient_checkpointing_enable(), or --checkpointing full",
                                   {Checkpointing::full, {}}));
  add_stages(changes, plan);
  planning_of(plan).lighter(changes, model, plan);
  for (Change& change : tile_changes(model, plan)) changes.push_back(std::move(change));
  add_batch(changes, model, plan);
  planning_of(plan).offloads(changes, plan);
  return changes;
}

}  // namespace shardplan
