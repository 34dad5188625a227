// GPU memory of the job: what the estimate says, and which key is behind it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "lint/repairs.h"
#include "lint/rules/families.h"
#include "questions/peer_rules.h"

namespace shardplan {
namespace {

constexpr std::string_view kEstimate = "docs/memory.md";

constexpr Rule kRules[] = {
    {"fit.gpu"_rule, Severity::error, "The job does not fit the GPUs",
     "The peak of one optimizer step is above what a process can allocate.", kEstimate,
     "See what `shardplan fit` proposes; the keys' costs are listed below the findings."},
    {"fit.gpu-tight"_rule, Severity::warning, "The job may not fit the GPUs",
     "The point estimate fits, its upper bound does not.", "docs/accuracy.md",
     "Make a little more room before a long run."},
    {"memory.estimator-misleads"_rule, Severity::warning,
     "DeepSpeed's own estimator says that this fits",
     "estimate_zero2/3_model_states_mem_needs counts model states only: no activations, logits, "
     "buckets, gathered layers, context or fragmentation.",
     "deepspeed/runtime/zero/stage_1_and_2.py, stage3.py; issues 4093, 4527, 2302 of DeepSpeed",
     "Plan with the peak, not with the states."},
    {"memory.step-temporaries"_rule, Severity::warning,
     "The optimizer step allocates a copy of its states",
     "torch's Adam in its foreach form makes lists of temporaries as large as what it updates; the "
     "first step is the peak.",
     "torch/optim/adam.py _multi_tensor_adam; pytorch issue 97712",
     "Remove optimizer.params.torch_adam: FusedAdam needs none.", repair::remove_it},
    {"memory.logits"_rule, Severity::warning, "Logits take a large part of the GPU",
     "The loss keeps fp32 logits of micro-batch x tokens x vocabulary, and their gradient.",
     "transformers: loss/loss_utils.py; trl issue 3678",
     "Use a fused linear cross-entropy (Liger's, use_liger_kernel), or a smaller micro-batch."},
    {"memory.fragmentation"_rule, Severity::warning,
     "The allocator's fragments keep the job from fitting",
     "Blocks of many sizes leave holes between them that nothing fits into; a tenth of the GPU or "
     "more "
     "goes to them, and the job does not surely fit.",
     "docs/allocator.md; pytorch issue 35901",
     "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."},
    {"memory.bucket"_rule, Severity::warning, "Buckets as large as the model",
     "reduce_bucket_size holds more elements than the model trains: all gradients at once, and "
     "with "
     "overlap_comm a second buffer.",
     "deepspeed/runtime/zero/stage_1_and_2.py; issue 4875 of DeepSpeed",
     "Use hidden_size squared, as HF Trainer's \"auto\" does."},
    {"memory.fp32"_rule, Severity::warning, "fp32 on GPUs with bf16 units",
     "Parameters, gradients and activations take twice the bytes, and the tensor cores' rate is "
     "not "
     "used.",
     "deepspeed/runtime/engine.py get_data_types; accelerate PR 2674", "Enable bf16."},
    {"memory.activations"_rule, Severity::warning,
     "Activations fill the GPU and are not checkpointed",
     "Every block keeps what its backward pass needs; checkpointing keeps a block's input only.",
     "docs/memory.md", "Checkpoint activations (gradient_checkpointing in HF's arguments)."},
    {"memory.better-value"_rule, Severity::note, "Another value needs less memory at the same pace",
     "Both were estimated for this model and machine.", kEstimate, "Take the value that is shown."},
};

Said saved(std::int64_t bytes, const PricedJob& job) {
  return say("{} of {} on each GPU", format_bytes(bytes), format_bytes(job.price().gpu));
}

std::int64_t at_peak(const Estimate& e, Category category) {
  for (const CategoryLine& line : e.breakdown)
    if (line.category == category) return line.at_peak;
  return 0;
}

bool at_least(std::int64_t part, std::int64_t whole, double share) {
  return static_cast<double>(part) >= share * static_cast<double>(whole);
}

void check_fit(const PricedJob& job, DsFindings& findings) {
  const Estimate& e = job.estimate();
  if (e.verdict.gpu.fit == Fit::does_not_fit)
    findings.error("fit.gpu"_rule, "zero_optimization",
                   say("needs {} of each GPU", format_bytes(e.device.point)),
                   say("at most {}", format_bytes(e.usable_bytes)));
  if (e.verdict.gpu.fit == Fit::tight)
    findings.warning("fit.gpu-tight"_rule, "zero_optimization",
                     say("needs {} of each GPU, at most {}", format_bytes(e.device.point),
                         format_bytes(e.device.upper)),
                     say("at most {}", format_bytes(e.usable_bytes)));
  if (e.verdict.gpu.fit != Fit::does_not_fit) return;
  const int stage = job.job().plan.framework.deepspeed.zero.stage;
  const auto states = stage == 3 ? deepspeed_zero3_estimate(job.job().model, job.job().plan)
                                 : deepspeed_zero2_estimate(job.job().model, job.job().plan);
  if (states && *states <= e.usable_bytes)
    findings.warning("memory.estimator-misleads"_rule, "zero_optimization.stage",
                     say("DeepSpeed's estimator says {}, the states alone; the peak is {}",
                         format_bytes(*states), format_bytes(e.device.point)));
}

void check_optimizer_step(const LintSubject& s, const PricedJob& job, DsFindings& findings) {
  constexpr const char* kTorchAdam = "optimizer.params.torch_adam";
  if (!s.values.flag(kTorchAdam)) return;
  const auto fused = job.with({remove_key(kTorchAdam)});
  if (!fused || !at_least(job.price().gpu - fused->price.gpu, job.price().gpu, 0.02)) return;
  findings.warning("memory.step-temporaries"_rule, kTorchAdam,
                   say("costs {}", saved(job.price().gpu - fused->price.gpu, job)), "FusedAdam");
}

void check_logits(const PricedJob& job, DsFindings& findings) {
  if (job.job().plan.loss != LossKind::cross_entropy || job.job().model.facts.vocabulary == 0)
    return;
  const auto fused = job.with_job(Json{{"loss", "fused_linear"}});
  if (!fused || !at_least(job.price().gpu - fused->price.gpu, job.price().gpu, 0.1)) return;
  findings.warning("memory.logits"_rule, "train_micro_batch_size_per_gpu",
                   say("logits of {} tokens x {} words cost {}",
                       format_count(job.job().plan.workload.micro_batch *
                                    job.job().plan.workload.sequence_length),
                       format_count(job.job().model.facts.vocabulary),
                       saved(job.price().gpu - fused->price.gpu, job)),
                   "a fused linear cross-entropy");
}

void check_fragmentation(const PricedJob& job, DsFindings& findings) {
  if (job.estimate().verdict.gpu.fit == Fit::fits) return;  // they harm nobody
  const std::int64_t fragments = at_peak(job.estimate(), Category::fragmentation);
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  if (fragments >= kGibibyte && at_least(fragments, job.price().gpu, 0.1))
    findings.warning("memory.fragmentation"_rule, "zero_optimization",
                     say("fragments of the allocator take {}", saved(fragments, job)),
                     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
}

void check_bucket(const LintSubject& s, const PricedJob& job, DsFindings& findings) {
  constexpr const char* kBucket = "zero_optimization.reduce_bucket_size";
  const Model& model = job.job().model;
  const std::int64_t hidden = model.facts.hidden;
  if (s.values.stage() == 0 || hidden == 0) return;
  const Parallel& divided = job.job().plan.parallel;
  const std::int64_t trained = model.trainable_count() / (divided.tensor * divided.pipeline);
  if (s.values.integer(kBucket) < trained) return;
  const auto smaller = job.with({set_key(kBucket, checked_mul(hidden, hidden))});
  if (!smaller || !at_least(job.price().gpu - smaller->price.gpu, job.price().gpu, 0.02)) return;
  findings.warning("memory.bucket"_rule, kBucket,
                   say("{} elements, and {} are trained on a rank: costs {}",
                       format_count(s.values.integer(kBucket)), format_count(trained),
                       saved(job.price().gpu - smaller->price.gpu, job)),
                   say("{}", hidden * hidden));
}

void check_fp32(const LintSubject& s, const PricedJob& job, DsFindings& findings) {
  const Precision& precision = job.job().plan.precision;
  if (precision.compute != DType::f32 || !job.job().plan.cluster.gpu.peak.bf16) return;
  if (s.values.flag("amp.enabled")) return;
  std::vector<Edit> edits{set_key("bf16.enabled", true)};
  const auto half = job.with(edits);
  if (!half) return;
  findings.warning("memory.fp32"_rule, "bf16.enabled",
                   say("fp32 needs {} of each GPU, bf16 {}", format_bytes(job.price().gpu),
                       format_bytes(half->price.gpu)),
                   "true");
}

void check_activations(const PricedJob& job, DsFindings& findings) {
  if (job.price().fits || job.job().plan.checkpointing != Checkpointing::none) return;
  if (!at_least(at_peak(job.estimate(), Category::activations), job.price().gpu, 0.25)) return;
  const auto full = job.with_job(Json{{"checkpointing", "full"}});
  if (!full) return;
  findings.warning("memory.activations"_rule, "train_micro_batch_size_per_gpu",
                   say("without checkpointing activations take {}; with it the peak is {}",
                       format_bytes(at_peak(job.estimate(), Category::activations)),
                       format_bytes(full->price.gpu)),
                   "gradient checkpointing");
}

}  // namespace

std::span<const Rule> memory_rules() {
  return kRules;
}

void check_memory(const LintSubject& s, LintFindings& findings) {
  if (s.priced == nullptr) return;
  const PricedJob& job = *s.priced;
  check_fit(job, findings.config);
  check_optimizer_step(s, job, findings.config);
  check_logits(job, findings.config);
  check_fragmentation(job, findings.config);
  check_bucket(s, job, findings.config);
  check_fp32(s, job, findings.config);
  check_activations(job, findings.config);
}

}  // namespace shardplan
