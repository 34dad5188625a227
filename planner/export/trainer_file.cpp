#include "export/trainer_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "export/optimizer_words.h"
#include "export/yaml_text.h"
#include "frameworks/planning_registry.h"
#include "frameworks/registry.h"
#include "kernels/registry.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "options/tables.h"
#include "save/checkpointing.h"
#include "save/options.h"
#include "trainers/description.h"
#include "yaml/document.h"

namespace shardplan {

void refuse_export(std::string key, Said message, Said expected) {
  throw InputError({.file = "<command line>",
                    .key = std::move(key),
                    .message = std::move(message),
                    .expected = std::move(expected)});
}

void refuse_more(const Json& object, std::string_view path, std::span<const std::string_view> said,
                 const char* message) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(said, std::string_view(key)) == said.end())
      refuse_export(fmt::format("{}.{}", path, key), message, "a job without it, or --as job");
}

std::string named_model(const Json& asked, std::string_view trainer) {
  const auto model = asked.find("model");
  if (model != asked.end() && model->is_string()) return model->get<std::string>();
  refuse_export("model",
                fmt::format("{} names a model or a folder, and the job has an object", trainer),
                "a name, or the folder of a config.json");
}

std::string_view attention_word(const Plan& plan, std::string_view eager,
                                std::string_view flash_attn) {
  if (plan.attention == AttentionKind::eager) return eager;
  if (plan.sdpa_kernel == SdpaKernel::flash_attention)
    refuse_export("sdpa_kernel",
                  "PyTorch's own FlashAttention-2 is what its versions 2.5.1 to 2.10 take on "
                  "Hopper: no trainer's file says it",
                  "flash_attn, the package, or cudnn_attention");
  return plan.calls_flash_attn() ? flash_attn : "sdpa";
}

void refuse_flash_attn(const Plan& plan, std::string_view trainer) {
  if (plan.calls_flash_attn())
    refuse_export("sdpa_kernel", say("{} does not call the package flash-attn 2", trainer),
                  "cudnn_attention, or --as job");
}

TrainerFile::TrainerFile(const Dialect& dialect, const Json& asked, const Job& job,
                         const Estimate& e)
    : dialect_(dialect), asked_(asked), job_(job), estimate_(e) {}

void TrainerFile::common() {
  put(dialect_.model, named_model(asked_, dialect_.name));
  workload();
  optimizer();
  checkpointing();
  tiles();
  kernels();
  compile();
  narrow_linears();
}

const Plan& TrainerFile::plan() const {
  return job_.plan;
}

bool TrainerFile::lora() const {
  return plan().workload.lora.has_value();
}

bool TrainerFile::has_zero() const {
  return traits_of(plan()).has_zero;
}

bool TrainerFile::shards_parameters() const {
  return !has_zero() && traits_of(plan()).shards_parameters(plan());
}

std::string TrainerFile::half() const {
  const std::string& name = plan().precision.name;
  return name.starts_with("bf16-") ? "bf16" : name.starts_with("fp16-") ? "fp16" : "";
}

std::string_view TrainerFile::style() const {
  std::string_view name = plan().precision.name;
  name = name.substr(0, name.find(' '));  // behind it is what linears multiply in
  const std::size_t dash = name.find('-');
  return dash == name.npos ? name : name.substr(dash + 1);
}

void TrainerFile::no_precision(std::string_view why) const {
  refuse_export("precision",
                say("{} cannot be said to {}: {}", plan().precision.name, dialect_.name, why),
                "another precision, or --as job");
}

void TrainerFile::precision_switches() {
  put("bf16", half() == "bf16");
  put("fp16", half() == "fp16");
}

Json TrainerFile::fsdp_block() const {
  if (has_zero()) return {};
  const Json accelerate =
      parse_yaml(planning_of(plan()).accelerate(plan()), "accelerate.yaml").value;
  const auto block = accelerate.find("fsdp_config");
  return block == accelerate.end() ? Json() : *block;
}

int TrainerFile::fsdp_version() const {
  const Json block = fsdp_block();
  return block.is_null() ? 0 : block.value("fsdp_version", 1);
}

/// Its batch is in the trainer's samples, of which HF Trainer checks the number: a pair is one.
Json TrainerFile::ds_config() const {
  const ExportFormat& own = *planning_of(plan()).own_format;
  Json config = Json::parse(own.write(asked_, job_, estimate_));
  const std::int64_t sequences = job_.rlhf ? job_.rlhf->description().sequences : 1;
  for (const char* key : {"train_batch_size", "train_micro_batch_size_per_gpu"})
    if (const auto value = config.find(key); value != config.end() && value->is_number_integer())
      *value = value->get<std::int64_t>() / sequences;
  return config;
}

void TrainerFile::distribution(bool fsdp_switch) {
  if (has_zero()) return put("deepspeed", ds_config());
  Json block = fsdp_block();
  if (block.is_null()) return;
  if (fsdp_switch) put("fsdp", "full_shard auto_wrap");
  put("fsdp_config", std::move(block));
}

void TrainerFile::lora_keys() {
  const Lora& lora = *plan().workload.lora;
  put(dialect_.rank, lora.rank);
  const bool all = lora.targets == std::vector<std::string>{"all-linear"};
  if (all && dialect_.all_linear.empty())
    put("lora_target_linear", true);
  else
    put(dialect_.targets, all ? Json(dialect_.all_linear) : Json(lora.targets));
  if (lora.rank_stabilized) put(dialect_.rank_stabilized, true);
  put("lora_dropout", lora.dropout);
  if (lora.magnitudes) put(dialect_.dora, true);
  if (!lora.saved.empty()) put(dialect_.saved, lora.saved);
  // FSDP's trainers cast all that trains, and DeepSpeed's engine nothing.
  const bool casts = dialect_.casts_copies;
  if (!lora.saved.empty() && !shards_parameters() && !has_zero() && lora.saved_in_fp32 != casts)
    refuse_export(
        "workload.lora.saved_in_fp32",
        casts ? say("{} casts copies", dialect_.name) : say("{} casts no copies", dialect_.name),
        casts ? "true" : "false");
}

std::string_view TrainerFile::base() const {
  return name_of(plan().workload.lora->base);
}

void TrainerFile::workload() {
  const Workload& w = plan().workload;
  put(dialect_.micro_batch, w.micro_batch);
  put("gradient_accumulation_steps", w.gradient_accumulation);
  put(dialect_.length, w.sequence_length);
  put("max_grad_norm", plan().gradient_clipping);
  if (w.packing && dialect_.packing.empty())
    refuse_export("workload.packing", "TrainingArguments have none", "trainer trl");
  if (w.packing) put(dialect_.packing, true);
  if (job_.model.facts.image.has_tower) images();
  if (plan().parallel.model_ranks() > 1 || plan().parallel.expert > 1)
    refuse_export("parallel",
                  fmt::format("{} files are written for data parallelism", dialect_.name),
                  "no degrees, or --as job");
}

/// How many images and how large is the data's to say; not all trainers freeze parts.
void TrainerFile::images() {
  const ImageWork& images = plan().workload.images;
  const bool texts = dialect_.image_switch && images.per_sample == 0;
  if (dialect_.image_switch && !texts) put("processor_type", "AutoProcessor");
  if (!texts && (images.per_sample != 1 || images.tokens != 0))
    refuse_export("workload.images",
                  fmt::format("{} files do not say how many images there are", dialect_.name),
                  "one image a sample, of the usual tokens, or --as job");
  const bool freezes = !dialect_.frozen_tower.empty();
  if (!freezes && images.frozen != FrozenParts::nothing)
    refuse_export("workload.frozen", fmt::format("{} freezes no parts", dialect_.name),
                  "nothing, or LLaMA-Factory");
  if (!freezes) return;
  put(dialect_.frozen_tower, images.frozen != FrozenParts::nothing);
  put(dialect_.frozen_projector, images.frozen == FrozenParts::tower_and_projector);
}

void TrainerFile::optimizer() {
  const std::string_view word = transformers_optimizer(plan());
  if (!word.empty()) return put(dialect_.optimizer, word);
  refuse_export("optimizer",
                fmt::format("{} ({}) has no name among transformers' optimizers",
                            plan().optimizer.kind->name, name_of(plan().optimizer.implementation)),
                "adamw, adamw_8bit, adafactor or another one of transformers'");
}

/// axolotl alone has a word for it.
void TrainerFile::tiles() {
  const std::int64_t count = plan().mlp_tiles;
  if (count == 0) return;
  if (dialect_.tiles.empty())
    refuse_export("mlp_tiles", fmt::format("{} has no tiled feed-forwards", dialect_.name), "0");
  put(dialect_.tiles, true);
  put(fmt::format("{}_num_shards", dialect_.tiles), count);
}

void TrainerFile::checkpointing() {
  const Json how = checkpointing_json(plan());
  const bool word = how.is_string() && (how == "none" || how == "full");
  const bool each = how.is_object() && how.value("policy", "") == "blocks" && how.contains("every");
  const bool offload = how.is_object() && how.value("policy", "") == "full";
  if (!word && !each && !offload)
    refuse_export("checkpointing",
                  fmt::format("{} cannot be said to {}", how.dump(), dialect_.name),
                  "none, full, or each n-th block");
  if (!word && dialect_.checkpoints != CheckpointWords::arguments)
    refuse_export("checkpointing", fmt::format("{} has all blocks or none", dialect_.name),
                  "none or full");
  const bool on = how != "none";
  if (dialect_.checkpoints == CheckpointWords::disabling)
    return put("disable_gradient_checkpointing", !on);
  put("gradient_checkpointing", on);
  if (dialect_.offloads != nullptr) file_.update(dialect_.offloads(plan()));
  if (word) return;
  Json more{{"use_reentrant", false}};
  if (each) more["every_n_layers"] = how.at("every");
  if (how.value("offload", false)) more["offload"] = true;
  put("gradient_checkpointing_kwargs", more);
}

void TrainerFile::compile() {
  if (!plan().compile) return;
  put("torch_compile", true);
  if (plan().compile->mode == CompileMode::usual) return;
  Json said;
  write_options(said, compile_table(), plan());
  put("torch_compile_mode", said.at("mode"));
}

/// torchao's with a scale for each tensor, as axolotl and LLaMA-Factory ask accelerate for them;
/// LLaMA-Factory has Transformer Engine's too.
void TrainerFile::narrow_linears() {
  if (!dialect_.fp8 || plan().precision.linear == LinearRecipe::computed) return;
  put("fp8", true);
  if (plan().precision.linear == LinearRecipe::fp8_delayed) put("fp8_backend", "te");
  if (plan().framework.fsdp2.float8_all_gather != Float8Gather::none)
    put("fp8_enable_fsdp_float8_all_gather", true);
}

void TrainerFile::kernels() {
  put(dialect_.attention, attention_word(plan(), dialect_.eager, dialect_.flash_attn));
  if (plan().loss == LossKind::fused_linear) {
    if (!dialect_.fused_loss)
      refuse_export("loss", fmt::format("{} has no fused loss of its own", dialect_.name),
                    "cross_entropy");
    put("cut_cross_entropy", true);
  }
  if (plan().loss == LossKind::tiled)
    refuse_export("loss", fmt::format("{} has no tiled loss", dialect_.name), "cross_entropy");
  if (!plan().kernels.any()) return;
  if (dialect_.kernel_switches) return liger_switches();
  put(dialect_.liger, true);
  if (!plan().kernels.patches) kernel_list();
}

void TrainerFile::kernel_list() {
  if (!dialect_.kernel_lists)
    refuse_export("kernels", fmt::format("{} has all of Liger's or none", dialect_.name), "liger");
  Json chosen;
  for (std::size_t i = 0; i < kKernelNames; ++i)
    chosen[std::string(fused_kernels()[i]->name)] = (plan().kernels.names >> i & 1U) != 0;
  put("liger_kernel_config", chosen);
}

/// axolotl's plugin has a switch for each kernel.
void TrainerFile::liger_switches() {
  const LigerPatch* patch = find_liger_patch(job_.model.facts.model_type);
  const std::uint32_t names =
      plan().kernels.patches ? (patch == nullptr ? 0 : patch->usual) : plan().kernels.names;
  put("plugins", Json{"axolotl.integrations.liger.LigerPlugin"});
  for (std::size_t i = 0; i < kKernelNames; ++i) {
    if ((names >> i & 1U) == 0) continue;
    const std::string_view name = fused_kernels()[i]->name;
    const bool gated = name == "swiglu" || name == "geglu";
    // It refuses both unless Liger's feed-forward is the one that is cut
    // (integrations/liger/args.py).
    if (gated && plan().mlp_tiles > 0) put("tiled_mlp_use_original_mlp", true);
    put(fmt::format("liger_{}", gated ? "glu_activation" : name), true);
  }
}

}  // namespace shardplan
