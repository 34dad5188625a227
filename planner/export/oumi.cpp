// A plan as oumi's YAML of `oumi train` (d8ed0777): the blocks that oumi hands to transformers and
// TRL (core/configs/params). What stays out of it has oumi's default there.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "export/fsdp1_loop.h"
#include "export/trainer_file.h"
#include "export/trainer_files.h"
#include "export/yaml_text.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

constexpr Dialect kOumi{.name = "oumi",
                        .model = "model_name",
                        .length = "model_max_length",
                        .packing = "pack",
                        .optimizer = "optimizer",
                        .liger = "enable_liger_kernel",
                        .kernel_lists = false};

/// Which block has a key; `training` has the others.
constexpr std::array<std::string_view, 4> kOfOumisModel{
    "model_name", "model_max_length", "attn_implementation", "enable_liger_kernel"};
constexpr std::array<std::string_view, 4> kOfOumisAdapters{"lora_r", "lora_target_modules",
                                                           "lora_dropout", "lora_modules_to_save"};

/// Of a ds_config what deepspeed_params.py has a field for; oumi says the batch and clipping.
Json deepspeed_block_of_oumi(const Json& config) {
  constexpr auto kOwn = std::to_array<std::string_view>(
      {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
       "gradient_clipping", "bf16", "fp16", "zero_optimization", "optimizer"});
  constexpr auto kOfZero = std::to_array<std::string_view>(
      {"stage", "overlap_comm", "contiguous_gradients", "sub_group_size", "reduce_bucket_size",
       "reduce_scatter", "allgather_partitions", "allgather_bucket_size", "round_robin_gradients",
       "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold",
       "stage3_max_live_parameters", "stage3_max_reuse_distance",
       "stage3_gather_16bit_weights_on_model_save", "offload_optimizer", "offload_param"});
  constexpr auto kOfOffload =
      std::to_array<std::string_view>({"device", "pin_memory", "buffer_count", "nvme_path"});
  constexpr const char* kWhy = "oumi's block of DeepSpeed has no such key";
  refuse_more(config, "ds_config", kOwn, kWhy);
  Json block{{"enable_deepspeed", true}};
  for (const char* half : {"bf16", "fp16"}) {
    const Json said = config.value(half, Json::object());
    constexpr auto kEnabled = std::to_array<std::string_view>({"enabled"});
    refuse_more(said, half, kEnabled, kWhy);
    if (said.value("enabled", false)) block["precision"] = upper_word(half);
  }
  const Json zero = config.value("zero_optimization", Json::object());
  refuse_more(zero, "zero_optimization", kOfZero, kWhy);
  for (const auto& [key, value] : zero.items()) {
    if (key != "stage") block[key] = value;
    if (key.starts_with("offload_")) refuse_more(value, key, kOfOffload, kWhy);
  }
  block["zero_stage"] = fmt::format("ZERO_{}", zero.value("stage", 0));
  for (const char* part : {"offload_optimizer", "offload_param"})
    if (block.contains(part))
      block[part]["device"] = upper_word(block[part].value("device", "cpu"));
  return block;
}

/// accelerate's words without their "fsdp_", and two of fsdp_params.py's own.
Json fsdp_of_oumi(const Json& accelerate) {
  if (accelerate.value("fsdp_version", 1) != 1)
    refuse_export("framework", "oumi has FSDP1 alone", "fsdp1, deepspeed or ddp");
  Json block{{"enable_fsdp", true}};
  for (const char* key : {"sharding_strategy", "auto_wrap_policy", "backward_prefetch",
                          "forward_prefetch", "use_orig_params", "state_dict_type"})
    if (const std::string own = fmt::format("fsdp_{}", key); accelerate.contains(own))
      block[key] = accelerate.at(own);
  if (accelerate.value("fsdp_offload_params", false)) block["cpu_offload"] = true;
  if (accelerate.contains("fsdp_min_num_params"))
    block["min_num_params"] = accelerate.at("fsdp_min_num_params");
  if (accelerate.contains("fsdp_transformer_layer_cls_to_wrap"))
    block["transformer_layer_cls"] = accelerate.at("fsdp_transformer_layer_cls_to_wrap");
  return block;
}

/// PeftParams' own words for how the base is stored (to_bits_and_bytes).
Json quantized_block_of_oumi(std::string_view base) {
  if (base == "none") return Json::object();
  if (base == "int8") return {{"q_lora", true}, {"q_lora_bits", 8}};
  const bool known = base.starts_with("nf4") || base.starts_with("fp4");
  if (!known) refuse_export("workload.lora.quantization", "oumi has 4 and 8 bits", "nf4_double");
  return {{"q_lora", true},
          {"bnb_4bit_quant_type", base.substr(0, 3)},
          {"use_bnb_nested_quant", base.ends_with("_double")}};
}

void check_of_oumi(const TrainerFile& file) {
  const Plan& plan = file.plan();
  if (plan.trainer->name != "hf_trainer" && plan.trainer->name != "trl")
    refuse_export("trainer", "oumi trains with transformers' Trainer or TRL's", "hf_trainer, trl");
  if (plan.compile && plan.compile->mode != CompileMode::usual)
    refuse_export("compile", "oumi compiles with the usual mode", "true");
  if (!plan.workload.lora) return;
  const Lora& lora = *plan.workload.lora;
  if (lora.rank_stabilized || lora.magnitudes)
    refuse_export("workload.lora", "oumi's adapters have neither of peft's variants",
                  "neither use_dora nor use_rslora");
}

/// The flat keys of all trainers, in their blocks.
Json in_blocks_of_oumi(const Json& flat) {
  Json out{{"model", Json::object()}, {"data", Json()}, {"training", Json::object()}};
  for (const auto& [key, value] : flat.items()) {
    if (key == "pack") continue;
    const auto is_in = [&key](const auto& keys) { return std::ranges::count(keys, key) > 0; };
    const char* block = is_in(kOfOumisModel)      ? "model"
                        : is_in(kOfOumisAdapters) ? "peft"
                                                  : "training";
    const std::string own = key == "gradient_checkpointing" ? "enable_gradient_checkpointing"
                            : key == "torch_compile"        ? "compile"
                                                            : key;
    out[block][own] = value;
  }
  Json data{{"datasets", Json::array({Json{{"dataset_name", "yours"}}})}};
  if (flat.contains("pack")) data["pack"] = true;
  out["data"] = {{"train", std::move(data)}};
  return out;
}

std::string oumi_yaml(const Json& asked, const Job& job, const Estimate& e) {
  TrainerFile file(kOumi, asked, job, e);
  check_of_oumi(file);
  file.common();
  if (file.lora()) file.lora_keys();
  Json out = in_blocks_of_oumi(file.take());
  const std::string half = file.half();
  out["training"]["trainer_type"] = job.plan.trainer->name == "trl" ? "TRL_SFT" : "HF";
  out["training"]["output_dir"] = "output";
  out["training"]["mixed_precision_dtype"] = half.empty() ? "NONE" : upper_word(half);
  if (!file.has_zero()) {
    // Beside mixed precision accelerate casts what FSDP trains to fp32.
    if (file.style() == "pure" && file.shards_parameters() && !file.lora())
      out["training"]["mixed_precision_dtype"] = "NONE";
    out["model"]["torch_dtype_str"] = file.style() != "pure" ? "float32"
                                      : half == "bf16"       ? "bfloat16"
                                                             : "float16";
  }
  if (file.lora()) {
    out["training"]["use_peft"] = true;
    out["peft"].update(quantized_block_of_oumi(file.base()));
  }
  if (file.has_zero())
    out["deepspeed"] = deepspeed_block_of_oumi(file.ds_config());
  else if (const Json block = file.fsdp_block(); !block.is_null())
    out["fsdp"] = fsdp_of_oumi(block);
  return header_comment(job, e) + yaml_text(out);
}

}  // namespace

const ExportFormat kOumiFormat{"oumi", "oumi.yaml", oumi_yaml, false, true};

}  // namespace shardplan
