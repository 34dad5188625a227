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
  if (plan.workload.lora) refuse_export("workload.method", "torchtitan has no adapters", "full");
  const std::string_view name = plan.optimizer.kind->name;
  if (name != "adamw" && name != "adam")
    refuse_export("optimizer", "torchtitan has AdamW and Adam", "adamw");
  if (plan.parallel.expert > 1)
    refuse_export("parallel.expert",
                  "torchtitan's back end of transformers' models does not divide experts",
                  "1, or --as job");
  if (plan.precision.name != "bf16-autocast" && plan.precision.name != "fp32" &&
      plan.precision.name != "bf16-pure")
    refuse_export("precision", fmt::format("{} is none of torchtitan's", plan.precision.name),
                  "bf16-autocast, bf16-pure or fp32");
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
      named_model(asked, "torchtitan"), w.micro_batch,
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
      shards > 0 ? plan.replicas() / shards : 1, shards, plan.parallel.tensor,
      !reshards                    ? "never"
      : plan.parallel.pipeline > 1 ? "always"
                                   : "default");
  text += "\n[activation_checkpoint]\n" + checkpoint_lines(plan);
  text += fmt::format("\n[optimizer]\nname = \"{}\"\nimplementation = \"{}\"\n",
                      plan.optimizer.kind->name == std::string_view("adam") ? "Adam" : "AdamW",
                      name_of(plan.optimizer.implementation));
  return text + fmt::format("\n[compile]\nenable = {}\n", plan.compile.has_value());
}

}  // namespace

const ExportFormat kTorchtitanFormat{"torchtitan", "torchtitan.toml", torchtitan_toml};

}  // namespace shardplan
