// A plan as a trainer's own file: transformers' TrainingArguments, axolotl, LLaMA-Factory,
// ms-swift. What a trainer cannot say is refused, so that importing the file gives the same plan.
#include "export/trainer_files.h"

#include <fmt/format.h>

#include "export/preference.h"
#include "export/trainer_file.h"
#include "export/yaml_text.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// OffloadActivations around the whole step.
Json trl_offloads(const Plan& plan) {
  const bool offloads = plan.activation_offloading != ActivationOffloading::none;
  return offloads ? Json{{"activation_offloading", true}} : Json::object();
}

/// TRL's offloader, which axolotl has in the place of recomputation, and for blocks' inputs alone.
Json axolotl_offloads(const Plan& plan) {
  const bool inputs = plan.checkpoint_share.offload;
  if (!inputs && plan.activation_offloading == ActivationOffloading::none) return Json::object();
  const bool one = plan.activation_offloading == ActivationOffloading::one_stream;
  return {{"gradient_checkpointing", true},
          {"activation_offloading", inputs ? Json("hidden_states")
                                    : one  ? Json("legacy")
                                           : Json(true)}};
}

constexpr Dialect kHf{.name = "TrainingArguments", .length = "model_max_length", .packing = ""};
constexpr Dialect kTrl{.name = "TRL", .offloads = trl_offloads};
constexpr Dialect kAxolotl{.name = "axolotl",
                           .model = "base_model",
                           .micro_batch = "micro_batch_size",
                           .length = "sequence_len",
                           .packing = "sample_packing",
                           .optimizer = "optimizer",
                           .rank_stabilized = "peft_use_rslora",
                           .dora = "peft_use_dora",
                           .all_linear = "",
                           .fused_loss = true,
                           .tiles = "tiled_mlp",
                           .offloads = axolotl_offloads,
                           .fp8 = true,
                           .image_switch = true,
                           .kernel_switches = true};
constexpr Dialect kLlamaFactory{.name = "LLaMA-Factory",
                                .length = "cutoff_len",
                                .liger = "enable_liger_kernel",
                                .attention = "flash_attn",
                                .eager = "disabled",
                                .flash_attn = "fa2",
                                .rank = "lora_rank",
                                .targets = "lora_target",
                                .saved = "additional_target",
                                .all_linear = "all",
                                .frozen_tower = "freeze_vision_tower",
                                .frozen_projector = "freeze_multi_modal_projector",
                                .checkpoints = CheckpointWords::disabling,
                                .fp8 = true,
                                .kernel_lists = false,
                                .casts_copies = true};
constexpr Dialect kMsSwift{.name = "ms-swift",
                           .model = "model",
                           .attention = "attn_impl",
                           .flash_attn = "flash_attn",
                           .rank = "lora_rank",
                           .targets = "target_modules",
                           .saved = "modules_to_save",
                           .frozen_tower = "freeze_vit",
                           .frozen_projector = "freeze_aligner",
                           .checkpoints = CheckpointWords::switched,
                           .kernel_lists = false};

/// TRL's where its own head and loss run, else transformers'.
const Dialect& hugging_face(const Plan& plan) {
  return plan.trainer->head_loss != nullptr ? kTrl : kHf;
}

/// Of a model with adapters FSDP2 shards what is frozen as it was loaded.
void refuse_half_shards(const TrainerFile& file) {
  const bool frozen = file.lora() && file.fsdp_version() == 2;
  if (file.style() == "pure" && file.shards_parameters() && !frozen)
    file.no_precision("accelerate casts what FSDP trains to fp32");
}

std::string training_arguments_json(const Json& asked, const Job& job, const Estimate& e) {
  TrainerFile file(hugging_face(job.plan), asked, job, e);
  file.common();
  const std::string half = file.half();
  const bool loads = !half.empty() && !file.has_zero();
  file.precision_switches();
  refuse_half_shards(file);
  if (loads && file.style() == "pure") file.put("dtype", half == "bf16" ? "bfloat16" : "float16");
  if (loads && file.style() == "autocast") file.put("dtype", "float32");
  file.distribution(true);
  if (file.lora()) {
    file.put("use_peft", true);
    file.lora_keys();
    const std::string_view base = file.base();
    if (base == "int8") file.put("load_in_8bit", true);
    if (base.find("4") != base.npos) {
      file.put("load_in_4bit", true);
      file.put("bnb_4bit_quant_type", base.substr(0, 3));
      file.put("use_bnb_nested_quant", base.ends_with("_double"));
    }
  }
  if (job.rlhf) put_preference(file, asked, job);
  return file.take().dump(2) + "\n";
}

/// axolotl loads weights in the type that it computes in, and FSDP2 shards them so.
void check_axolotl(const TrainerFile& file) {
  const bool second = file.fsdp_version() == 2;
  if (file.style() == "autocast" && (second || !file.shards_parameters()))
    file.no_precision("it loads weights in the type that it computes in");
  if (second && file.plan().trainer->shards_ends_apart)
    refuse_export("trainer", "under FSDP2 axolotl has embeddings and head in one unit", "axolotl");
}

std::string axolotl_yaml(const Json& asked, const Job& job, const Estimate& e) {
  TrainerFile file(kAxolotl, asked, job, e);
  file.common();
  check_axolotl(file);
  file.precision_switches();
  if (file.lora()) {
    const std::string_view base = file.base();
    const bool four = base.find('4') != base.npos;
    file.put("adapter", four ? "qlora" : "lora");
    if (four) file.put("load_in_4bit", true);
    if (base == "int8") file.put("load_in_8bit", true);
    if (four && base.starts_with("fp4"))
      refuse_export("workload.lora.quantization", "axolotl quantizes to nf4", "nf4_double");
    if (four && !base.ends_with("_double"))
      file.put("bnb_config_kwargs", Json{{"bnb_4bit_use_double_quant", false}});
    file.lora_keys();
  }
  file.distribution(false);
  file.put("datasets", Json::array({Json{{"path", "yours"}, {"type", "alpaca"}}}));
  file.put("learning_rate", 2e-5);
  return header_comment(job, e) + yaml_text(file.take());
}

/// LLaMA-Factory casts what it trains to fp32, unless pure_bf16 says not to.
std::string llamafactory_yaml(const Json& asked, const Job& job, const Estimate& e) {
  TrainerFile file(kLlamaFactory, asked, job, e);
  file.common();
  const std::string half = file.half();
  file.put("stage", "sft");
  file.put("do_train", true);
  file.put("finetuning_type", file.lora() ? "lora" : "full");
  const bool pure = file.style() == "pure" && !file.lora() && !file.has_zero();
  if (pure && half == "fp16") file.no_precision("it trains parameters in bf16 or fp32");
  file.precision_switches();
  if (pure) file.put("pure_bf16", true);
  if (file.lora()) {
    const std::string_view base = file.base();
    file.lora_keys();
    if (base != "none") {
      file.put("quantization_bit", base == "int8" ? 8 : 4);
      file.put("quantization_method", "bnb");
      if (base.starts_with("fp4")) file.put("quantization_type", "fp4");
      if (base != "int8") file.put("double_quantization", base.ends_with("_double"));
    }
  }
  file.distribution(true);
  file.put("template", "default");
  file.put("dataset", "yours");
  return header_comment(job, e) + yaml_text(file.take());
}

/// ms-swift takes FSDP2 by its name, with transformers' options as they come.
void swift_distribution(TrainerFile& file) {
  const Json block = file.fsdp_block();
  if (block.is_null()) return file.distribution(false);
  const bool usual = block.value("fsdp_version", 1) == 2 &&
                     block.value("fsdp_reshard_after_forward", true) &&
                     !block.value("fsdp_offload_params", false) &&
                     block.value("fsdp_auto_wrap_policy", "") == "TRANSFORMER_BASED_WRAP" &&
                     block.value("fsdp_state_dict_type", "") == "SHARDED_STATE_DICT";
  if (!usual)
    refuse_export("framework", "ms-swift takes other options of FSDP from a file of their own",
                  "FSDP2 as it comes, DeepSpeed, or --as training_arguments");
  file.put("fsdp", "fsdp2");
}

std::string ms_swift_yaml(const Json& asked, const Job& job, const Estimate& e) {
  TrainerFile file(kMsSwift, asked, job, e);
  file.common();
  const std::string half = file.half();
  file.put("tuner_type", file.lora() ? "lora" : "full");
  file.precision_switches();
  refuse_half_shards(file);
  if (!file.has_zero())
    file.put("torch_dtype", file.style() != "pure" ? "float32"
                            : half == "bf16"       ? "bfloat16"
                                                   : "float16");
  if (file.lora()) {
    file.lora_keys();
    const std::string_view base = file.base();
    if (base != "none") {
      file.put("quant_method", "bnb");
      file.put("quant_bits", base == "int8" ? 8 : 4);
    }
    if (base.find('4') != base.npos) {
      file.put("bnb_4bit_quant_type", base.substr(0, 3));
      file.put("bnb_4bit_use_double_quant", base.ends_with("_double"));
    }
  }
  swift_distribution(file);
  file.put("dataset", Json{"yours"});
  return header_comment(job, e) + yaml_text(file.take());
}

}  // namespace

const ExportFormat kTrainingArgumentsFormat{"training_arguments", "training_arguments.json",
                                            training_arguments_json, true, true};
const ExportFormat kAxolotlFormat{"axolotl", "axolotl.yaml", axolotl_yaml, false, true};
const ExportFormat kLlamaFactoryFormat{"llamafactory", "llamafactory.yaml", llamafactory_yaml,
                                       false, true};
const ExportFormat kMsSwiftFormat{"ms_swift", "ms_swift.yaml", ms_swift_yaml, false, true};

}  // namespace shardplan
