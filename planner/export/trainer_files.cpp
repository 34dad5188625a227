// A plan as a trainer's own file: transformers' TrainingArguments, axolotl, LLaMA-Factory. What a
// trainer cannot say is refused, so that importing the file gives the same plan.
#include "export/trainer_files.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "export/yaml_text.h"
#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "kernels/registry.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "save/checkpointing.h"
#include "trainers/description.h"
#include "yaml/document.h"

namespace shardplan {
namespace {

/// How one trainer spells what all have.
struct Dialect {
  std::string_view name;  ///< for people
  std::string_view model, micro_batch, length, packing, optimizer, liger, attention, rank, targets,
      clipping, saved;
};

constexpr Dialect kHf{"TrainingArguments",
                      "model_name_or_path",
                      "per_device_train_batch_size",
                      "model_max_length",
                      "",
                      "optim",
                      "use_liger_kernel",
                      "attn_implementation",
                      "lora_r",
                      "lora_target_modules",
                      "max_grad_norm",
                      "lora_modules_to_save"};
constexpr Dialect kTrl{"TRL",
                       "model_name_or_path",
                       "per_device_train_batch_size",
                       "max_length",
                       "packing",
                       "optim",
                       "use_liger_kernel",
                       "attn_implementation",
                       "lora_r",
                       "lora_target_modules",
                       "max_grad_norm",
                       "lora_modules_to_save"};
constexpr Dialect kAxolotl{
    "axolotl",        "base_model",          "micro_batch_size", "sequence_len",
    "sample_packing", "optimizer",           "use_liger_kernel", "attn_implementation",
    "lora_r",         "lora_target_modules", "max_grad_norm",    "lora_modules_to_save"};
constexpr Dialect kLlamaFactory{"LLaMA-Factory",
                                "model_name_or_path",
                                "per_device_train_batch_size",
                                "cutoff_len",
                                "packing",
                                "optim",
                                "enable_liger_kernel",
                                "flash_attn",
                                "lora_rank",
                                "lora_target",
                                "max_grad_norm",
                                "additional_target"};

struct OptimizerWord {
  std::string_view name, implementation, word;
};

constexpr std::array kOptimizerWords{
    OptimizerWord{"adamw", "fused", "adamw_torch_fused"},
    OptimizerWord{"adamw", "foreach", "adamw_torch"},
    OptimizerWord{"adamw_8bit", "", "adamw_bnb_8bit"},
    OptimizerWord{"paged_adamw", "", "paged_adamw_32bit"},
    OptimizerWord{"paged_adamw_8bit", "", "paged_adamw_8bit"},
    OptimizerWord{"adamw_4bit", "", "adamw_torch_4bit"},
    OptimizerWord{"adafactor", "", "adafactor"},
    OptimizerWord{"lion", "", "lion_32bit"},
    OptimizerWord{"sgd", "foreach", "sgd"},
    OptimizerWord{"adagrad", "foreach", "adagrad"},
};

class TrainerFile {
 public:
  TrainerFile(const Dialect& dialect, const Json& asked, const Job& job, const Estimate& e)
      : dialect_(dialect), asked_(asked), job_(job), plan_(job.plan), estimate_(e) {}

  /// What all trainers have.
  void common() {
    if (plan_.workload.kind != WorkKind::train)
      refuse_export("workload.kind",
                    fmt::format("{} files are written for training", dialect_.name), "train");
    put(dialect_.model, model_name());
    workload();
    optimizer();
    checkpointing();
    kernels();
  }

  Json take() { return std::move(file_); }
  void put(std::string_view key, Json value) { file_[std::string(key)] = std::move(value); }
  const Plan& plan() const { return plan_; }
  bool lora() const { return plan_.workload.lora.has_value(); }
  bool shards_parameters() const {
    return !has_zero() && traits_of(plan_).shards_parameters(plan_);
  }
  /// "all-linear" by each trainer's own word.
  void targets_as_switch() {
    Json& targets = file_[std::string(dialect_.targets)];
    if (targets != Json::array({"all-linear"})) return;
    if (dialect_.name == kLlamaFactory.name) {
      targets = "all";
      return;
    }
    file_.erase(std::string(dialect_.targets));
    put("lora_target_linear", true);
  }
  bool has_zero() const { return traits_of(plan_).has_zero; }

  /// "bf16", "fp16" or "" of the preset, and what stands behind it.
  std::string half() const {
    const std::string& name = plan_.precision.name;
    return name.starts_with("bf16-") ? "bf16" : name.starts_with("fp16-") ? "fp16" : "";
  }
  std::string_view style() const {
    const std::string_view name = plan_.precision.name;
    const std::size_t dash = name.find('-');
    return dash == name.npos ? name : name.substr(dash + 1);
  }
  [[noreturn]] void no_precision(std::string_view why) const {
    refuse_export(
        "precision",
        fmt::format("{} cannot be said to {}: {}", plan_.precision.name, dialect_.name, why),
        "another precision, or --as job");
  }

  /// The ds_config inside the file, or FSDP's options as accelerate's file has them.
  void distribution(bool fsdp_switch) {
    if (has_zero()) {
      const ExportFormat& own = *planning_of(plan_).own_format;
      put("deepspeed", Json::parse(own.write(asked_, job_, estimate_)));
      return;
    }
    const Json accelerate =
        parse_yaml(planning_of(plan_).accelerate(plan_), "accelerate.yaml").value;
    if (!accelerate.contains("fsdp_config")) return;
    if (fsdp_switch) put("fsdp", "full_shard auto_wrap");
    put("fsdp_config", accelerate.at("fsdp_config"));
  }

  void lora_keys() {
    const Lora& lora = *plan_.workload.lora;
    put(dialect_.rank, lora.rank);
    put(dialect_.targets, lora.targets);
    if (lora.rank_stabilized)
      put(dialect_.name == kAxolotl.name ? "peft_use_rslora" : "use_rslora", true);
    put("lora_dropout", lora.dropout);
    if (lora.magnitudes) put(dialect_.name == kAxolotl.name ? "peft_use_dora" : "use_dora", true);
    if (!lora.saved.empty()) put(dialect_.saved, lora.saved);
    // FSDP's trainers cast all that trains, and DeepSpeed's engine nothing.
    const bool casts = dialect_.name == kLlamaFactory.name;
    if (!lora.saved.empty() && !shards_parameters() && !has_zero() && lora.saved_in_fp32 != casts)
      refuse_export("workload.lora.saved_in_fp32",
                    fmt::format("{} casts {}", dialect_.name, casts ? "copies" : "no copies"),
                    casts ? "true" : "false");
  }
  std::string_view base() const { return name_of(plan_.workload.lora->base); }

 private:
  Json model_name() const {
    const auto model = asked_.find("model");
    if (model != asked_.end() && model->is_string()) return *model;
    refuse_export(
        "model",
        fmt::format("{} names a model or a folder, and the job has an object", dialect_.name),
        "a name, or the folder of a config.json");
  }

  void workload() {
    const Workload& w = plan_.workload;
    put(dialect_.micro_batch, w.micro_batch);
    put("gradient_accumulation_steps", w.gradient_accumulation);
    put(dialect_.length, w.sequence_length);
    put(dialect_.clipping, plan_.gradient_clipping);
    if (w.packing && dialect_.packing.empty())
      refuse_export("workload.packing", "TrainingArguments have none", "trainer trl");
    if (w.packing) put(dialect_.packing, true);
    if (job_.model.facts.image.has_tower) images(w.images);
    if (plan_.parallel.model_ranks() > 1 || plan_.parallel.expert > 1)
      refuse_export("parallel",
                    fmt::format("{} files are written for data parallelism", dialect_.name),
                    "no degrees, or --as job");
  }

  /// How many images and how large is the data's to say; LLaMA-Factory alone freezes parts.
  void images(const ImageWork& images) {
    if (images.per_sample != 1 || images.tokens != 0)
      refuse_export("workload.images",
                    fmt::format("{} files do not say how many images there are", dialect_.name),
                    "one image a sample, of the usual tokens, or --as job");
    const bool llamafactory = dialect_.name == kLlamaFactory.name;
    if (!llamafactory && images.frozen != FrozenParts::nothing)
      refuse_export("workload.frozen", fmt::format("{} freezes no parts", dialect_.name),
                    "nothing, or LLaMA-Factory");
    if (!llamafactory) return;
    put("freeze_vision_tower", images.frozen != FrozenParts::nothing);
    put("freeze_multi_modal_projector", images.frozen == FrozenParts::tower_and_projector);
  }

  void optimizer() {
    std::string_view name = plan_.optimizer.kind->name;
    if (name == "adafactor_transformers") name = "adafactor";  // what Trainer makes of it
    const std::string_view how = name_of(plan_.optimizer.implementation);
    for (const OptimizerWord& word : kOptimizerWords)
      if (word.name == name && (word.implementation.empty() || word.implementation == how))
        return put(dialect_.optimizer, word.word);
    refuse_export("optimizer",
                  fmt::format("{} ({}) has no name among transformers' optimizers", name, how),
                  "adamw, adamw_8bit, adafactor or another one of transformers'");
  }

  void checkpointing() {
    const Json how = checkpointing_json(plan_);
    const bool word = how.is_string() && (how == "none" || how == "full");
    const bool each =
        how.is_object() && how.value("policy", "") == "blocks" && how.contains("every");
    const bool offload = how.is_object() && how.value("policy", "") == "full";
    if (!word && !each && !offload)
      refuse_export("checkpointing",
                    fmt::format("{} cannot be said to {}", how.dump(), dialect_.name),
                    "none, full, or each n-th block");
    const bool on = how != "none";
    if (dialect_.name == kLlamaFactory.name) {
      if (!word)
        refuse_export("checkpointing", "LLaMA-Factory has all blocks or none", "none or full");
      return put("disable_gradient_checkpointing", !on);
    }
    put("gradient_checkpointing", on);
    if (word) return;
    Json more{{"use_reentrant", false}};
    if (each) more["every_n_layers"] = how.at("every");
    if (how.value("offload", false)) more["offload"] = true;
    put("gradient_checkpointing_kwargs", more);
  }

  void kernels() {
    put(dialect_.attention, dialect_.name == kLlamaFactory.name
                                ? (plan_.attention == AttentionKind::eager ? "disabled" : "sdpa")
                                : (plan_.attention == AttentionKind::eager ? "eager" : "sdpa"));
    if (plan_.compile) put("torch_compile", true);
    if (plan_.loss == LossKind::fused_linear) {
      if (dialect_.name != kAxolotl.name)
        refuse_export("loss", fmt::format("{} has no fused loss of its own", dialect_.name),
                      "cross_entropy");
      put("cut_cross_entropy", true);
    }
    if (!plan_.kernels.any()) return;
    if (dialect_.name == kAxolotl.name) return liger_switches();
    put(dialect_.liger, true);
    if (plan_.kernels.patches) return;
    if (dialect_.name == kLlamaFactory.name)
      refuse_export("kernels", "LLaMA-Factory has all of Liger's or none", "liger");
    Json chosen;
    for (std::size_t i = 0; i < kKernelNames; ++i)
      chosen[std::string(fused_kernels()[i]->name)] = (plan_.kernels.names >> i & 1U) != 0;
    put("liger_kernel_config", chosen);
  }

  /// axolotl's plugin has a switch for each kernel.
  void liger_switches() {
    const LigerPatch* patch = find_liger_patch(job_.model.facts.model_type);
    const std::uint32_t names =
        plan_.kernels.patches ? (patch == nullptr ? 0 : patch->usual) : plan_.kernels.names;
    put("plugins", Json{"axolotl.integrations.liger.LigerPlugin"});
    for (std::size_t i = 0; i < kKernelNames; ++i) {
      if ((names >> i & 1U) == 0) continue;
      const std::string_view name = fused_kernels()[i]->name;
      const bool gated = name == "swiglu" || name == "geglu";
      put(fmt::format("liger_{}", gated ? "glu_activation" : name), true);
    }
  }

  const Dialect& dialect_;
  const Json& asked_;
  const Job& job_;
  const Plan& plan_;
  const Estimate& estimate_;
  Json file_ = Json::object();
};

/// TRL's where its own head and loss run, else transformers'.
const Dialect& hugging_face(const Plan& plan) {
  return plan.trainer->head_loss != nullptr ? kTrl : kHf;
}

std::string training_arguments_json(const Json& asked, const Job& job, const Estimate& e) {
  TrainerFile file(hugging_face(job.plan), asked, job, e);
  file.common();
  const std::string half = file.half();
  const bool loads = !half.empty() && !file.has_zero();
  file.put("bf16", half == "bf16");
  file.put("fp16", half == "fp16");
  if (file.style() == "pure" && file.shards_parameters())
    file.no_precision("accelerate casts what FSDP trains to fp32");
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
  return file.take().dump(2) + "\n";
}

/// axolotl loads weights in the type that it computes in.
std::string axolotl_yaml(const Json& asked, const Job& job, const Estimate& e) {
  TrainerFile file(kAxolotl, asked, job, e);
  file.common();
  const std::string half = file.half();
  if (file.style() == "autocast" && !file.shards_parameters())
    file.no_precision("it loads weights in the type that it computes in");
  file.put("bf16", half == "bf16");
  file.put("fp16", half == "fp16");
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
    file.targets_as_switch();
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
  file.put("bf16", half == "bf16");
  file.put("fp16", half == "fp16");
  if (pure) file.put("pure_bf16", true);
  if (file.lora()) {
    const std::string_view base = file.base();
    file.lora_keys();
    file.targets_as_switch();
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

}  // namespace

void refuse_export(std::string key, std::string message, std::string expected) {
  throw InputError({.file = "<command line>",
                    .key = std::move(key),
                    .message = std::move(message),
                    .expected = std::move(expected)});
}

const ExportFormat kTrainingArgumentsFormat{"training_arguments", "training_arguments.json",
                                            training_arguments_json};
const ExportFormat kAxolotlFormat{"axolotl", "axolotl.yaml", axolotl_yaml};
const ExportFormat kLlamaFactoryFormat{"llamafactory", "llamafactory.yaml", llamafactory_yaml};

}  // namespace shardplan
