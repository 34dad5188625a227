// DeepSpeed's engine as OpenRLHF configures it (utils/deepspeed/deepspeed_utils.py,
// get_train_ds_config, where "auto" is DeepSpeed's own default), and what stands inside of it.
#include <fmt/format.h>

#include "import/kinds/openrlhf_flags.h"
#include "import/vocabulary.h"

namespace shardplan::importing::openrlhf {
namespace {

Json on_host() {
  return Json{{"device", "cpu"}, {"pin_memory", true}};
}

Json zero_of(const Flags& f) {
  const std::int64_t stage = f.integer("zero_stage", 2);
  if (stage > 3) f.refuse("zero_stage", fmt::format("found {}", stage), "a stage from 0 to 3");
  Json zero{{"stage", stage}};
  if (f.on("adam_offload")) zero["offload_optimizer"] = on_host();
  if (const std::int64_t zpg = f.integer("zpg", 1); zpg > 1) zero["zero_hpz_partition_size"] = zpg;
  if (f.on("overlap_comm")) zero["overlap_comm"] = zero["contiguous_gradients"] = true;
  if (stage == 3) zero["reduce_scatter"] = true;
  return zero;
}

/// get_optimizer_grouped_parameters or Muon's groups, by DeepSpeed's own classes.
Json optimizer_of(const Flags& f) {
  const std::string name = f.text("optim", "adam");
  if (name != "adam" && name != "muon")
    f.refuse("optim", fmt::format("'{}' is none of OpenRLHF's", name), "adam or muon");
  return Json{{"type", name == "muon" ? "Muon" : "AdamW"}};
}

std::string dtype_of(const Flags& f) {
  const std::string name = f.text("param_dtype", "bf16");
  if (name != "bf16" && name != "fp16")
    f.refuse("param_dtype", fmt::format("found '{}'", name), "bf16 or fp16");
  return name;
}

/// models/actor.py: peft's adapters; a base in 4 bits has double quantization.
void take_adapters(const Flags& f) {
  const std::int64_t rank = f.integer("lora_rank", 0);
  if (rank == 0) {
    if (f.on("load_in_4bit"))
      f.refuse("load_in_4bit", "a base in 4 bits without adapters does not train",
               "lora_rank of at least 1 beside it");
    return;
  }
  Recipe& recipe = f.recipe();
  make_lora(recipe);
  recipe.lora["rank"] = rank;
  const std::vector<std::string> targets = f.list("target_modules");
  recipe.lora["targets"] = targets.empty() ? Json{"all-linear"} : Json(targets);
  recipe.lora["dropout"] = f.number("lora_dropout", 0);
  f.came_from("/workload/lora/rank", "lora_rank");
  if (f.on("load_in_4bit")) quantize_base(recipe, "nf4_double");
}

}  // namespace

Json frozen_role(const Flags& f, std::string_view offload) {
  const bool asked = f.on(offload) || f.on("ref_reward_offload");
  if (!asked) return Json::object();
  if (f.integer("zero_stage", 2) != 3) {
    f.warn(f.says(offload) ? offload : "ref_reward_offload",
           "DeepSpeed offloads parameters under stage 3 alone: the model stays on the GPU");
    return Json::object();
  }
  return Json{
      {"framework", {{"ds_config", {{"zero_optimization", {{"offload_param", on_host()}}}}}}}};
}

void compose_engine(const Flags& f) {
  Recipe& recipe = f.recipe();
  const std::string dtype = dtype_of(f);
  Json config{{"zero_optimization", zero_of(f)},
              {dtype, {{"enabled", true}}},
              {"gradient_clipping", f.number("max_norm", 1.0)},
              {"optimizer", optimizer_of(f)}};
  if (f.says("grad_accum_dtype"))
    config["data_types"] = Json{{"grad_accum_dtype", f.text("grad_accum_dtype", "")}};
  recipe.set("/framework", Json{{"name", "deepspeed"}, {"ds_config", std::move(config)}},
             f.origin("zero_stage"));
  recipe.set("/trainer", "openrlhf", {});
  recipe.set("/checkpointing", f.on("gradient_checkpointing") ? "full" : "none",
             f.origin("gradient_checkpointing"));
  if (!f.says("attn_implementation")) assume_flash_attn(recipe);
  if (const std::int64_t ring = f.integer("ring_attn_size", 1); ring > 1) {
    recipe.set("/parallel/sequence", ring, f.origin("ring_attn_size"));
    f.warn("ring_attn_size",
           "is estimated as Ulysses, whose exchanges are others: each GPU has as "
           "many tokens");
  }
  if (f.on("enable_ema") && f.integer("zero_stage", 2) != 3)
    f.refuse("enable_ema", "an average of the weights that stays on the GPU is not estimated",
             "ZeRO stage 3, which has it on the host, or none");
  take_adapters(f);
}

}  // namespace shardplan::importing::openrlhf
