// A plan as LLM Foundry's YAML (8c8dd48f7: command_utils/train.py): a model of transformers or peft
// in composer's loop, under FSDP1 or DDP.
#include <fmt/format.h>

#include <array>

#include "export/fsdp1_loop.h"
#include "export/trainer_file.h"
#include "export/trainer_files.h"
#include "export/yaml_text.h"
#include "frameworks/registry.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "save/checkpointing.h"
#include "save/options.h"

namespace shardplan {
namespace {

void check_of_foundry(const Plan& plan) {
  check_fsdp1_loop(plan, "LLM Foundry");
  if (plan.kernels.any() || plan.loss != LossKind::cross_entropy)
    refuse_export("kernels", "LLM Foundry has no keys for fused kernels of transformers' models",
                  "none, or --as job");
}

/// The words of llmfoundry's registry of optimizers, and how each steps.
std::string_view optimizer_word_of_foundry(const Plan& plan) {
  const std::string_view name = plan.optimizer.kind->name;
  const std::string_view how = name_of(plan.optimizer.implementation);
  if (name == "adamw" && how == "for-loop") return "decoupled_adamw";
  if (name == "adamw" && how == "foreach") return "adamw";
  if (name == "adam" && how == "foreach") return "adam";
  if (name == "lion") return "decoupled_lionw";
  refuse_export("optimizer", fmt::format("{} ({}) is none of LLM Foundry's", name, how),
                "adamw, for-loop or foreach; adam, foreach; or lion");
}

Json adapters_of_foundry(const Lora& lora) {
  Json peft{{"peft_type", "LORA"},
            {"r", lora.rank},
            {"target_modules", lora.targets == std::vector<std::string>{"all-linear"}
                                   ? Json("all-linear")
                                   : Json(lora.targets)},
            {"lora_dropout", lora.dropout}};
  if (lora.rank_stabilized) peft["use_rslora"] = true;
  if (lora.magnitudes) peft["use_dora"] = true;
  if (!lora.saved.empty()) peft["modules_to_save"] = lora.saved;
  return peft;
}

/// The layers that import/kinds/llm_foundry_model.cpp makes of MPT's sizes.
bool is_mpt(const Json& model) {
  return model.is_object() && model.value("model_type", "") == "gpt2" &&
         model.value("activation_function", "") == "gelu" && model.contains("n_inner");
}

/// MPT's own layers call flash-attn 2, or keep the scores (attention.py).
std::string_view attention_of_mpt(const Plan& plan) {
  if (plan.attention == AttentionKind::sdpa && !plan.calls_flash_attn())
    refuse_export("sdpa_kernel", "MPT's own fused attention is the package flash-attn 2",
                  "flash_attn, or attention eager");
  return attention_word(plan, "torch", "flash");
}

Json mpt_block(const Json& model, const Plan& plan) {
  const double ratio = model.at("n_inner").get<double>() / model.at("n_embd").get<double>();
  return Json{
      {"name", "mpt_causal_lm"},
      {"d_model", model.at("n_embd")},
      {"n_heads", model.at("n_head")},
      {"n_layers", model.at("n_layer")},
      {"expansion_ratio", ratio},
      {"vocab_size", model.at("vocab_size")},
      {"max_seq_len", model.at("n_positions")},
      {"resid_pdrop", model.value("resid_pdrop", 0.1)},
      {"emb_pdrop", model.value("embd_pdrop", 0.1)},
      {"attn_config",
       {{"attn_impl", attention_of_mpt(plan)}, {"attn_pdrop", model.value("attn_pdrop", 0.1)}}}};
}

Json hugging_face_block(const Json& asked, const Plan& plan) {
  return Json{{"name", "hf_causal_lm"},
              {"pretrained_model_name_or_path", named_model(asked, "LLM Foundry")},
              {"pretrained", true},
              {"attn_implementation", attention_word(plan)}};
}

Json model_block_of_foundry(const Json& asked, const Plan& plan) {
  const Json own = asked.value("model", Json());
  Json model = is_mpt(own) ? mpt_block(own, plan) : hugging_face_block(asked, plan);
  if (!plan.workload.lora) return model;
  const Lora& lora = *plan.workload.lora;
  model["peft_config"] = adapters_of_foundry(lora);
  if (lora.base == Quantization::none) return model;
  if (name_of(lora.base) != "int8")
    refuse_export("workload.lora.quantization", "LLM Foundry quantizes to 8 bits", "int8");
  model["load_in_8bit"] = true;
  return model;
}

/// composer's FSDPConfig; its options of checkpointing stand there too.
Json fsdp_block_of_foundry(const Plan& plan) {
  Json own;
  write_options(own, *traits_of(plan).options.get(), plan.framework);
  Json block{{"sharding_strategy", upper_word(own.value("sharding_strategy", "full_shard"))},
             {"mixed_precision", own.value("reduce_dtype", "") == "fp32" ? "DEFAULT" : "PURE"},
             {"use_orig_params", own.value("use_orig_params", false)},
             {"limit_all_gathers", own.value("limit_all_gathers", true)},
             {"forward_prefetch", own.value("forward_prefetch", false)},
             {"state_dict_type", own.value("state_dict_type", "sharded")}};
  const std::string prefetch = own.value("backward_prefetch", "pre");
  if (prefetch == "none")
    refuse_export("framework.backward_prefetch", "composer gathers ahead", "pre or post");
  block["backward_prefetch"] = prefetch == "pre" ? "BACKWARD_PRE" : "BACKWARD_POST";
  for (const char* key : {"cpu_offload", "keep_low_precision_grads"})
    if (own.value(key, false)) block[key] = true;
  if (own.contains("hybrid_shard_size")) {
    const std::int64_t size = own.at("hybrid_shard_size").get<std::int64_t>();
    block["data_parallel_shard_degree"] = size;
    block["data_parallel_replicate_degree"] = plan.replicas() / size;
  }
  const Json how = checkpointing_json(plan);
  const bool offloads = how.is_object() && how.value("offload", false);
  const bool full = how == "full" || (how.is_object() && how.value("policy", "") == "full");
  if (how != "none" && !full)
    refuse_export("checkpointing", how.dump() + " is none of composer's", "none or full");
  if (full) block["activation_checkpointing"] = true;
  if (offloads) block["activation_cpu_offload"] = true;
  return block;
}

std::string llm_foundry_yaml(const Json& asked, const Job& job, const Estimate& e) {
  const Plan& plan = job.plan;
  check_of_foundry(plan);
  const Workload& w = plan.workload;
  Json dataset{{"max_seq_len", w.sequence_length}};
  if (w.packing) dataset["packing_ratio"] = "auto";
  Json file{
      {"max_seq_len", w.sequence_length},
      {"model", model_block_of_foundry(asked, plan)},
      {"train_loader", {{"name", "finetuning"}, {"dataset", dataset}}},
      {"optimizer", {{"name", optimizer_word_of_foundry(plan)}, {"lr", 2e-5}}},
      {"max_duration", "1ep"},
      {"global_train_batch_size", checked_mul(plan.samples_at_once(), w.gradient_accumulation)},
      {"device_train_microbatch_size", w.micro_batch},
      {"precision", amp_word(plan, "LLM Foundry")}};
  if (plan.gradient_clipping > 0)
    file["algorithms"]["gradient_clipping"] = {{"clipping_type", "norm"},
                                               {"clipping_threshold", plan.gradient_clipping}};
  if (plan.compile) file["compile_config"] = compile_block(plan);
  if (name_of(plan.framework.kind) == "fsdp1")
    file["fsdp_config"] = fsdp_block_of_foundry(plan);
  else if (checkpointing_json(plan) != "none")
    refuse_export("checkpointing", "composer checkpoints under FSDP alone", "none, or fsdp1");
  return header_comment(job, e) + yaml_text(file);
}

}  // namespace

const ExportFormat kLlmFoundryFormat{"llm_foundry", "llm_foundry.yaml", llm_foundry_yaml, false,
                                     true};

}  // namespace shardplan
