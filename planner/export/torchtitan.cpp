// A plan as torchtitan's TOML (v0.2.2), with transformers' class as the model.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "export/trainer_file.h"
#include "export/trainer_files.h"
#include "frameworks/registry.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "save/checkpointing.h"
#include "save/options.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

std::string checkpoint_lines(const Plan& plan) {
  const Json how = checkpointing_json(plan);
  if (how == "none" || how == "full") return fmt::format("mode = \"{}\"\n", how.get<std::string>());
  const std::string policy = how.is_object() ? how.value("policy", "") : "";
  if (policy == "selective_op" && how.value("every", 2) == 2)
    return "mode = \"selective\"\nselective_ac_option = \"op\"\n";
  if (policy == "blocks" && how.contains("every"))
    return fmt::format("mode = \"selective\"\nselective_ac_option = \"{}\"\n",
                       how.at("every").get<int>());
  refuse_export("checkpointing", how.dump() + " is none of torchtitan's",
                "none, full, selective_op");
}

void check(const Plan& plan) {
  if (plan.trainer->name != "torchtitan")
    refuse_export("trainer", "the plan runs under another program", "torchtitan");
  refuse_flash_attn(plan, "torchtitan");
  if (plan.workload.lora) refuse_export("workload.method", "torchtitan has no adapters", "full");
  const std::string_view name = plan.optimizer.kind->name;
  if (name != "adamw" && name != "adam")
    refuse_export("optimizer", "torchtitan has AdamW and Adam", "adamw");
  if (plan.parallel.expert > 1)
    refuse_export("parallel.expert",
                  "torchtitan's back end of transformers' models does not divide experts",
                  "1, or --as job");
  if (plan.parallel.tensor > 1 && !plan.parallel.sequence_parallel)
    refuse_export("parallel.sequence_parallel", "torchtitan's plans divide tokens too", "true");
  if (plan.precision.name != "bf16-autocast" && plan.precision.name != "fp32" &&
      plan.precision.name != "bf16-pure")
    refuse_export("precision", fmt::format("{} is none of torchtitan's", plan.precision.name),
                  "bf16-autocast, bf16-pure or fp32");
}

/// torchtitan cuts its local batch into micro-batches, and has two chunks on each stage where a
/// schedule has several.
std::string pipeline_lines(const Plan& plan) {
  const Parallel& p = plan.parallel;
  if (p.pipeline == 1) return "";
  if (!p.stage_layers.empty())
    refuse_export("parallel.stage_layers", "torchtitan names modules of its own classes there",
                  "leave it out");
  if (p.virtual_pipeline > 2)
    refuse_export("parallel.virtual_pipeline", "torchtitan's schedules put two chunks on a stage",
                  "2");
  const std::string_view schedule = p.schedule == PipelineSchedule::gpipe         ? "GPipe"
                                    : p.schedule == PipelineSchedule::one_f_one_b ? "1F1B"
                                    : p.schedule == PipelineSchedule::interleaved
                                        ? "Interleaved1F1B"
                                        : "ZBVZeroBubble";
  const int ends = p.balance == StageBalance::blocks_and_ends ? 1 : 0;
  return fmt::format(
      "pipeline_parallel_degree = {}\npipeline_parallel_schedule = \"{}\"\n"
      "pipeline_parallel_microbatch_size = {}\n"
      "pipeline_parallel_first_stage_less_layers = {}\n"
      "pipeline_parallel_last_stage_less_layers = {}\n",
      p.pipeline, schedule, plan.workload.micro_batch, ends, ends);
}

std::string context_lines(const Plan& plan) {
  if (plan.parallel.context == 1) return "";
  return fmt::format(
      "context_parallel_degree = {}\ncontext_parallel_rotate_method = \"{}\"\n",
      plan.parallel.context,
      plan.framework.fsdp2.rotation == KeyRotation::allgather ? "allgather" : "alltoall");
}

/// Samples that a rank is given at once: all of a pipeline's micro-batches.
std::int64_t local_batch(const Plan& plan) {
  const Workload& w = plan.workload;
  return plan.parallel.pipeline > 1 ? checked_mul(w.micro_batch, w.gradient_accumulation)
                                    : w.micro_batch;
}

std::string torchtitan_toml(const Json& asked, const Job& job, const Estimate& e) {
  const Plan& plan = job.plan;
  check(plan);
  Json own;
  write_options(own, *traits_of(plan).options.get(), plan.framework);
  const Workload& w = plan.workload;
  std::string text = header_comment(job, e);
  text += fmt::format(
      "[model]\nname = \"transformers_modeling_backend\"\nflavor = \"full\"\n\n"
      "[hf_transformers]\nmodel = \"{}\"\n\n[training]\nlocal_batch_size = {}\n"
      "global_batch_size = {}\nseq_len = {}\nmax_norm = {:.6f}\n",
      named_model(asked, "torchtitan"), local_batch(plan),
      checked_mul(plan.samples_at_once(), w.gradient_accumulation), w.sequence_length,
      plan.gradient_clipping);
  if (plan.precision.name == "bf16-pure") text += "dtype = \"bfloat16\"\n";
  if (plan.precision.name == "fp32") text += "mixed_precision_param = \"float32\"\n";
  if (own.value("cpu_offload", false)) text += "enable_cpu_offload = true\n";
  const std::int64_t shards = own.value("hybrid_shard_size", std::int64_t{-1});
  const bool reshards = own.value("reshard_after_forward", true);
  text += fmt::format(
      "\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "tensor_parallel_degree = {}\nfsdp_reshard_after_forward = \"{}\"\n",
      shards > 0 ? plan.replicas() / shards : 1,
      shards > 0 ? shards / plan.parallel.context : shards, plan.parallel.tensor,
      !reshards                    ? "never"
      : plan.parallel.pipeline > 1 ? "always"
                                   : "default");
  text += pipeline_lines(plan) + context_lines(plan);
  text += "\n[activation_checkpoint]\n" + checkpoint_lines(plan);
  text += fmt::format("\n[optimizer]\nname = \"{}\"\nimplementation = \"{}\"\n",
                      plan.optimizer.kind->name == std::string_view("adam") ? "Adam" : "AdamW",
                      name_of(plan.optimizer.implementation));
  return text + fmt::format("\n[compile]\nenable = {}\n", plan.compile.has_value());
}

}  // namespace

const ExportFormat kTorchtitanFormat{"torchtitan", "torchtitan.toml", torchtitan_toml, false, true};

}  // namespace shardplan
