// A plan as a recipe of NeMo Automodel: transformers' model under its FSDP2 or DDP, whose step is a
// plain loop (components/distributed/config.py).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "export/trainer_file.h"
#include "export/trainer_files.h"
#include "export/yaml_text.h"
#include "frameworks/registry.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "save/checkpointing.h"
#include "save/options.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

void check_nemo(const Plan& plan) {
  if (plan.trainer != &default_trainer())
    refuse_export("trainer", "NeMo Automodel runs a loop of its own", "loop");
  if (plan.workload.lora && plan.workload.lora->base != Quantization::none &&
      name_of(plan.workload.lora->base).find("nf4") == std::string_view::npos)
    refuse_export("workload.lora.quantization", "NeMo quantizes to nf4", "nf4 or nf4_double");
  if (plan.kernels.any()) refuse_export("kernels", "the recipe has no key for Liger's", "torch");
  const Parallel& p = plan.parallel;
  if (p.sequence > 1 || p.expert_tensor > 1)
    refuse_export("parallel", "NeMo Automodel has no such degree", "tensor, context, expert");
}

Json distributed(const Plan& plan) {
  Json own;
  write_options(own, *traits_of(plan).options.get(), plan.framework);
  const std::string_view name = name_of(plan.framework.kind);
  if (name == "ddp") return Json{{"strategy", "ddp"}};
  if (name != "fsdp2" && name != "single")
    refuse_export("framework", fmt::format("NeMo Automodel does not run under {}", name),
                  "fsdp2 or ddp");
  Json block{{"strategy", "fsdp2"}};
  if (name == "single") return block;
  for (const char* key : {"cpu_offload", "hybrid_shard_size"})
    if (own.contains(key) && own.at(key) != false)
      refuse_export(fmt::format("framework.{}", key), "is not written to NeMo's recipes", "none");
  if (own.value("reduce_dtype", "") != "fp32")
    refuse_export("framework.reduce_dtype", "NeMo Automodel reduces gradients in fp32", "fp32");
  block["defer_fsdp_grad_sync"] = !own.value("sync_each_batch", true);
  block["reshard_after_forward"] = own.value("reshard_after_forward", true);
  if (plan.parallel.expert > 1)
    block["moe"] = Json{{"reshard_after_forward", own.value("reshard_after_forward", true)}};
  return block;
}

std::string optimizer_of_recipe(const Plan& plan) {
  const std::string_view name = plan.optimizer.kind->name;
  const std::string_view how = name_of(plan.optimizer.implementation);
  if (name == "adamw" && how == "foreach") return "torch.optim.AdamW";
  if (name == "adam" && how == "foreach") return "torch.optim.Adam";
  if (name == "adamw" && how == "fused") return "transformer_engine.pytorch.optimizers.FusedAdam";
  refuse_export("optimizer", fmt::format("{} ({}) is not written", name, how),
                "adamw, foreach or fused");
}

void put_precision(Json& recipe, const Plan& plan) {
  const std::string& preset = plan.precision.name;
  const bool lora = plan.workload.lora.has_value();
  if (preset == "bf16-pure")
    recipe["model"]["torch_dtype"] = "bf16";
  else if (preset == "bf16-autocast" && !lora)
    recipe["model"]["torch_dtype"] = "fp32";
  else
    refuse_export("precision", fmt::format("{} is none of NeMo Automodel's", preset),
                  "bf16-pure, or bf16-autocast without adapters");
}

void put_checkpointing(Json& block, const Plan& plan) {
  const Json how = checkpointing_json(plan);
  const bool by_operation =
      how.is_object() && how.value("policy", "") == "selective_op" && how.value("every", 2) == 2;
  if (how != "none" && how != "full" && !by_operation)
    refuse_export("checkpointing", how.dump() + " is none of NeMo's", "none, full, selective_op");
  block["activation_checkpointing"] = by_operation ? Json("selective") : Json(how == "full");
}

void put_adapters(Json& recipe, const Lora& lora) {
  recipe["peft"] = Json{{"_target_", "nemo_automodel.components._peft.lora.PeftConfig"},
                        {"target_modules", lora.targets},
                        {"dim", lora.rank},
                        {"dropout", lora.dropout}};
  if (lora.magnitudes || lora.rank_stabilized || !lora.saved.empty())
    refuse_export("workload.lora", "DoRA, rsLoRA and modules_to_save are not written",
                  "plain LoRA");
  if (lora.base == Quantization::none) return;
  const bool twice = name_of(lora.base).ends_with("_double");
  recipe["quantization"] = Json{
      {"load_in_4bit", true}, {"bnb_4bit_quant_type", "nf4"}, {"bnb_4bit_use_double_quant", twice}};
}

/// What `freeze_config` freezes of a model with images, and with what that is gathered.
void put_frozen(Json& recipe, const Plan& plan) {
  const FrozenParts frozen = plan.workload.images.frozen;
  if (frozen == FrozenParts::nothing) return;
  if (frozen == FrozenParts::tower_and_projector)
    refuse_export("workload.frozen", "NeMo's recipes freeze projectors by their names alone",
                  "tower or nothing");
  recipe["freeze_config"] = Json{{"freeze_vision_tower", true}};
  if (plan.framework.fsdp2.frozen_tower == FrozenTower::blocks)
    recipe["distributed"]["multimodal"] = Json{{"frozen_sharding", "per_layer"}};
}

std::string nemo_yaml(const Json& asked, const Job& job, const Estimate& e) {
  const Plan& plan = job.plan;
  const Workload& w = plan.workload;
  check_nemo(plan);
  Json recipe;
  recipe["step_scheduler"] =
      Json{{"global_batch_size", checked_mul(plan.samples_at_once(), w.gradient_accumulation)},
           {"local_batch_size", w.micro_batch}};
  recipe["model"] = Json{{"_target_", "nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained"},
                         {"pretrained_model_name_or_path", named_model(asked, "NeMo Automodel")},
                         {"attn_implementation", attention_word(plan)}};
  put_precision(recipe, plan);
  Json& block = recipe["distributed"] = distributed(plan);
  for (const auto& [key, degree] :
       {std::pair{"tp_size", plan.parallel.tensor}, std::pair{"cp_size", plan.parallel.context},
        std::pair{"pp_size", plan.parallel.pipeline}, std::pair{"ep_size", plan.parallel.expert}})
    if (degree > 1) block[key] = degree;
  if (plan.parallel.expert > 1)
    recipe["model"]["backend"]["dispatcher"] =
        plan.framework.fsdp2.dispatch == ExpertDispatch::allgather ? "torch" : "deepep";
  put_checkpointing(block, plan);
  put_frozen(recipe, plan);
  if (w.lora) put_adapters(recipe, *w.lora);
  if (w.packing) recipe["packed_sequence"] = Json{{"packed_sequence_size", w.sequence_length}};
  recipe["dataset"] = Json{{"seq_length", w.sequence_length}};
  recipe["optimizer"] = Json{{"_target_", optimizer_of_recipe(plan)}, {"lr", 1e-5}};
  if (plan.loss == LossKind::tiled)
    refuse_export("loss", "NeMo has no tiled loss", "cross_entropy or fused_linear");
  const bool fused = plan.loss == LossKind::fused_linear;
  recipe["loss_fn"] = Json{{"_target_", fused ? "nemo_automodel.components.loss.linear_ce."
                                                "FusedLinearCrossEntropy"
                                              : "nemo_automodel.components.loss.masked_ce."
                                                "MaskedCrossEntropy"}};
  recipe["clip_grad_norm"] = Json{{"max_norm", plan.gradient_clipping}};
  if (plan.compile) recipe["compile"] = Json{{"enabled", true}};
  return header_comment(job, e) + yaml_text(recipe);
}

}  // namespace

const ExportFormat kNemoFormat{"nemo", "nemo.yaml", nemo_yaml, false, true};

}  // namespace shardplan
