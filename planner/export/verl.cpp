// A plan as verl reads it: here its supervised trainer (0.8: verl/trainer/config/
// sft_trainer.yaml).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "export/trainer_file.h"
#include "export/trainer_files.h"
#include "export/verl_rl.h"
#include "export/verl_workers.h"
#include "export/yaml_text.h"
#include "frameworks/registry.h"
#include "save/checkpointing.h"
#include "save/options.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

void check_verl(const Plan& plan) {
  if (plan.trainer->name != "verl")
    refuse_export("trainer", "the plan runs under another program", "verl");
  check_verl_optimizer(plan);
  const Json how = checkpointing_json(plan);
  if (how != "none" && how != "full")
    refuse_export("checkpointing", how.dump() + " is none of verl's", "none or full");
  if (plan.precision.name != "bf16-autocast" && plan.precision.name != "bf16-pure")
    refuse_export("precision", fmt::format("{} is none of verl's", plan.precision.name),
                  "bf16-autocast or bf16-pure");
  if (plan.workload.packing)
    refuse_export("workload.packing", "verl's supervised trainer joins no samples", "false");
  const Parallel& p = plan.parallel;
  if (p.tensor > 1 || p.pipeline > 1 || p.context > 1 || p.expert > 1)
    refuse_export("parallel", "verl's supervised trainer divides sequences alone", "sequence");
  if (plan.mlp_tiles > 0) refuse_export("mlp_tiles", "verl has no tiled feed-forwards", "0");
  if (plan.kernels.any() && !plan.kernels.patches)
    refuse_export("kernels", "verl has all of Liger's or none", "liger");
  if (plan.workload.lora && plan.workload.lora->base != Quantization::none)
    refuse_export("workload.lora.quantization", "verl quantizes no base", "none");
}

/// FULL_SHARD with gradients in fp32, which the trainer has no choice of.
bool verl_offloads(const Plan& plan) {
  Json own;
  write_options(own, *traits_of(plan).options.get(), plan.framework);
  const std::string_view name = name_of(plan.framework.kind);
  const bool known = name == "fsdp1" || name == "fsdp2";
  const bool usual = own.value("sharding_strategy", "full_shard") == "full_shard" &&
                     own.value("reshard_after_forward", true) &&
                     own.value("reduce_dtype", "") == "fp32" &&
                     !own.value("use_orig_params", false);
  if (!known || !usual)
    refuse_export("framework", "verl shards all, and reduces gradients in fp32",
                  "fsdp1 or fsdp2 with reduce_dtype fp32");
  return own.value("cpu_offload", false);
}

std::string verl_yaml(const Json& asked, const Job& job, const Estimate& e) {
  if (job.rlhf) return verl_rl_yaml(asked, job, e);
  const Plan& plan = job.plan;
  const Workload& w = plan.workload;
  check_verl(plan);
  const bool host = verl_offloads(plan);
  Json file;
  file["data"] =
      Json{{"train_batch_size", checked_mul(plan.samples_at_once(), w.gradient_accumulation)},
           {"micro_batch_size_per_gpu", w.micro_batch},
           {"max_length", w.sequence_length}};
  Json& model = file["model"];
  model["partial_pretrain"] = named_model(asked, "verl");
  model["strategy"] = name_of(plan.framework.kind) == "fsdp1" ? "fsdp" : "fsdp2";
  model["fsdp_config"] = Json{{"model_dtype", plan.precision.name == "bf16-pure" ? "bf16" : "fp32"},
                              {"cpu_offload", host},
                              {"offload_params", host}};
  model["enable_gradient_checkpointing"] = checkpointing_json(plan) == "full";
  if (plan.kernels.any()) model["use_liger"] = true;
  if (w.lora) {
    model["lora_rank"] = w.lora->rank;
    const bool all = w.lora->targets == std::vector<std::string>{"all-linear"};
    model["target_modules"] = all ? Json("all-linear") : Json(w.lora->targets);
  }
  file["optim"] = Json{{"lr", 1e-5}, {"clip_grad", plan.gradient_clipping}};
  file["ulysses_sequence_parallel_size"] = plan.parallel.sequence;
  file["trainer"] =
      Json{{"nnodes", plan.cluster.nodes}, {"n_gpus_per_node", plan.cluster.gpus_per_node}};
  return header_comment(job, e) + yaml_text(file);
}

}  // namespace

const ExportFormat kVerlFormat{"verl", "verl.yaml", verl_yaml, true, true};

}  // namespace shardplan
