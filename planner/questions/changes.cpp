#include "questions/changes.h"

#include <fmt/format.h>

#include "job/fields.h"
#include "load/precision.h"
#include "parallel/problem.h"
#include "parallel/support.h"

namespace shardplan {
namespace {

const ZeroOptions& zero_of(const Plan& plan) {
  return plan.framework.deepspeed.zero;
}

void add_stages(std::vector<Change>& changes, const Plan& plan) {
  const bool deepspeed = plan.framework.kind == FrameworkKind::deepspeed;
  const int now = deepspeed ? zero_of(plan).stage : -1;
  if (plan.cluster.world() == 1 || plan.framework.kind == FrameworkKind::megatron) return;
  for (int stage = std::max(now + 1, 1); stage <= 3; ++stage)
    changes.push_back({fmt::format("ZeRO stage {}", stage),
                       fmt::format("zero_optimization.stage: {}", stage),
                       [stage](Plan& p) { set_zero_stage(p, stage); }, "stage"});
}

/// Megatron-LM's answer to too little memory: more GPUs share a layer, the layers or a sequence,
/// as many samples a step as before.
void add_degrees(std::vector<Change>& changes, const Model& model, const Plan& plan) {
  if (plan.framework.kind != FrameworkKind::megatron) return;
  const auto add = [&](std::string what, std::string setting, auto&& apply) {
    Plan changed = plan;
    apply(changed);
    if (division_problem(model, changed)) return;
    changes.push_back({std::move(what), std::move(setting), apply, "degrees"});
  };
  const Parallel& now = plan.parallel;
  if (now.tensor > 1 && !now.sequence_parallel)
    add("tokens divided among tensor-parallel GPUs", "--sequence-parallel",
        [](Plan& p) { p.parallel.sequence_parallel = true; });
  const auto twice = [&](Degree degree, fmt::string_view what, std::string_view argument) {
    const std::int64_t degrees = 2 * (now.*member_of(degree));
    add(fmt::format(fmt::runtime(what), degrees), fmt::format("{} {}", argument, degrees),
        [degree](Plan& p) {
          const bool shares_experts = p.parallel.expert_tensor == p.parallel.tensor;
          p.parallel.*member_of(degree) *= 2;
          if (degree == Degree::tensor) p.parallel.sequence_parallel = true;
          if (shares_experts) p.parallel.expert_tensor = p.parallel.tensor;
          p.workload.gradient_accumulation *= 2;
        });
  };
  if (2 * now.tensor <= plan.cluster.gpus_per_node)
    twice(Degree::tensor, "each layer over {} GPUs", "--tensor-model-parallel-size");
  twice(Degree::pipeline, "the layers over {} stages", "--pipeline-model-parallel-size");
  if (now.sequence == 1)
    twice(Degree::context, "each sequence over {} GPUs", "--context-parallel-size");
}

void add_offloads(std::vector<Change>& changes, const Plan& plan) {
  if (plan.framework.kind != FrameworkKind::deepspeed || zero_of(plan).stage == 0) return;
  const ZeroOptions& zero = zero_of(plan);
  const bool optimizer_here = zero.offload_optimizer.device == OffloadDevice::none;
  const bool parameters_here = zero.offload_param.device == OffloadDevice::none;
  if (optimizer_here)
    changes.push_back(
        {"optimizer states on the host", "zero_optimization.offload_optimizer.device: cpu",
         [](Plan& p) { set_offload(p, OffloadDevice::cpu, OffloadDevice::none); }, "offload"});
  if (zero.stage == 3 && parameters_here)
    changes.push_back({"optimizer states and parameters on the host",
                       "zero_optimization.offload_optimizer.device and offload_param.device: cpu",
                       [](Plan& p) { set_offload(p, OffloadDevice::cpu, OffloadDevice::cpu); },
                       "offload"});
}

void add_buckets(std::vector<Change>& changes, const Model& model, const Plan& plan) {
  if (plan.framework.kind != FrameworkKind::deepspeed || zero_of(plan).stage == 0) return;
  const std::int64_t hidden = model.facts.hidden;
  if (hidden == 0 || zero_of(plan).reduce_bucket_size <= hidden * hidden) return;
  changes.push_back({"buckets sized to the model, as HF Trainer's \"auto\" does",
                     fmt::format("reduce_bucket_size: {0}, stage3_prefetch_bucket_size: {1}, "
                                 "stage3_param_persistence_threshold: {2}",
                                 hidden * hidden, hidden * hidden * 9 / 10, 10 * hidden),
                     [hidden](Plan& p) {
                       ZeroOptions& zero = p.framework.deepspeed.zero;
                       zero.reduce_bucket_size = hidden * hidden;
                       zero.prefetch_bucket_size = hidden * hidden * 9 / 10;
                       zero.param_persistence_threshold = 10 * hidden;
                     },
                     "buckets"});
}

void add_reuse(std::vector<Change>& changes, const Plan& plan) {
  if (plan.framework.kind != FrameworkKind::deepspeed || zero_of(plan).stage != 3) return;
  if (zero_of(plan).max_reuse_distance == 0) return;
  changes.push_back({"no parameters kept from forward to backward",
                     "zero_optimization.stage3_max_reuse_distance: 0",
                     [](Plan& p) { p.framework.deepspeed.zero.max_reuse_distance = 0; }, "reuse"});
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
                       [half](Plan& p) { p.workload.sequence_length = half; }, "sequence"});
  }
}

}  // namespace

void set_zero_stage(Plan& plan, int stage) {
  if (plan.framework.kind != FrameworkKind::deepspeed) {
    const bool half = plan.precision.compute == DType::f16;
    const bool full = plan.precision.compute == DType::f32;
    plan.precision = precision_preset(full ? "fp32" : half ? "fp16-master" : "bf16-master");
    plan.framework = {};
    plan.framework.kind = FrameworkKind::deepspeed;
  }
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.stage = stage;
  zero.overlap_comm = stage == 3;
  if (stage == 0) zero.offload_optimizer = {};
  if (stage < 3) zero.offload_param = {};
}

void set_offload(Plan& plan, OffloadDevice optimizer, OffloadDevice parameters) {
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  zero.offload_optimizer.device = optimizer;
  // MiCS sums gradients over its copies on GPUs only.
  if (optimizer != OffloadDevice::none && plan.copies() > 1) zero.mics_shard_size = -1;
  zero.offload_param.device = parameters;
}

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
  add_degrees(changes, model, plan);
  add_buckets(changes, model, plan);
  add_reuse(changes, plan);
  add_batch(changes, plan);
  add_offloads(changes, plan);
  return changes;
}

}  // namespace shardplan
