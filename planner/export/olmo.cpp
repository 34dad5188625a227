// A plan as OLMo's YAML (59a53e3f: olmo/config.py): its own network, with the sizes of the model's
// config.json, under FSDP1 or DDP.
#include <fmt/format.h>

#include <array>

#include "export/fsdp1_loop.h"
#include "export/trainer_file.h"
#include "export/trainer_files.h"
#include "export/yaml_text.h"
#include "frameworks/registry.h"
#include "load/catalog.h"
#include "load/optimizer.h"
#include "optimizers/description.h"
#include "save/checkpointing.h"
#include "save/options.h"

namespace shardplan {
namespace {

Json sizes_for_olmo(const Json& asked) {
  const Json model = asked.value("model", Json());
  if (model.is_object()) return model;
  if (model.is_string())
    if (const auto known = find_model(model.get_ref<const std::string&>())) return known->config;
  refuse_export("model", "OLMo's file has the network's sizes, and the job names no known ones",
                "a name of the catalogue, or the config.json itself");
}

/// ModelConfig of the two networks that OLMo's classes and transformers' have in common.
Json model_block_of_olmo(const Json& asked, const Plan& plan) {
  const Json config = sizes_for_olmo(asked);
  const std::string type = config.value("model_type", "");
  if (type != "olmo2" && type != "llama")
    refuse_export("model", fmt::format("a {} is no network of OLMo's", type), "olmo2 or llama");
  const std::int64_t heads = config.value("num_attention_heads", 0);
  return Json{{"d_model", config.value("hidden_size", 0)},
              {"n_heads", heads},
              {"n_kv_heads", config.value("num_key_value_heads", heads)},
              {"n_layers", config.value("num_hidden_layers", 0)},
              {"mlp_hidden_size", 2 * config.value("intermediate_size", 0)},
              {"activation_type", "swiglu"},
              {"block_type", "sequential"},
              {"rope", true},
              {"include_bias", false},
              {"layer_norm_type", "rms"},
              {"norm_after", type == "olmo2"},
              {"attention_layer_norm", type == "olmo2"},
              {"attention_dropout", config.value("attention_dropout", 0.0)},
              {"residual_dropout", 0.0},
              {"embedding_dropout", 0.0},
              {"vocab_size", config.value("vocab_size", 0)},
              {"embedding_size", config.value("vocab_size", 0)},
              {"weight_tying", config.value("tie_word_embeddings", false)},
              {"flash_attention", plan.calls_flash_attn()},
              {"max_sequence_length", plan.workload.sequence_length}};
}

std::string_view optimizer_word_of_olmo(const Plan& plan) {
  const std::string_view name = plan.optimizer.kind->name;
  const std::string_view how = name_of(plan.optimizer.implementation);
  if (name == "adamw" && how == "foreach") return "adamw";
  if (name == "lion") return "lionw";
  refuse_export("optimizer", fmt::format("{} ({}) is none of OLMo's", name, how),
                "adamw, foreach; or lion");
}

/// should_checkpoint_block's names.
Json checkpoint_word_of_olmo(const Plan& plan) {
  const Json how = checkpointing_json(plan);
  if (how == "none") return {};
  if (how == "full") return "whole_layer";
  constexpr std::array<std::pair<int, const char*>, 4> kShares{
      {{2, "one_in_two"}, {3, "one_in_three"}, {4, "one_in_four"}, {8, "one_in_eight"}}};
  if (how.is_object() && how.value("policy", "") == "blocks" && !how.value("offload", false))
    for (const auto& [every, word] : kShares)
      if (how.value("every", 0) == every) return word;
  refuse_export("checkpointing", how.dump() + " is none of OLMo's",
                "none, full, or each 2nd, 3rd, 4th or 8th block");
}

Json fsdp_block_of_olmo(const Plan& plan) {
  Json own;
  write_options(own, *traits_of(plan).options.get(), plan.framework);
  if (own.contains("hybrid_shard_size"))
    refuse_export("framework.hybrid_shard_size", "OLMo has a copy for each node", "a node's");
  return {{"wrapping_strategy", "by_block"},
          {"sharding_strategy", upper_word(own.value("sharding_strategy", "full_shard"))},
          {"use_orig_params", own.value("use_orig_params", false)},
          {"precision", own.value("reduce_dtype", "") == "fp32" ? "mixed" : "pure"}};
}

std::string olmo_yaml(const Json& asked, const Job& job, const Estimate& e) {
  const Plan& plan = job.plan;
  check_fsdp1_loop(plan, "OLMo");
  const Workload& w = plan.workload;
  if (w.lora) refuse_export("workload.method", "OLMo has no adapters", "full");
  if (plan.kernels.any() || plan.loss != LossKind::cross_entropy)
    refuse_export("kernels", "OLMo's own layers have no fused kernels", "none");
  Json file{
      {"model", model_block_of_olmo(asked, plan)},
      {"optimizer", {{"name", optimizer_word_of_olmo(plan)}, {"learning_rate", 3e-4}}},
      {"global_train_batch_size", checked_mul(plan.samples_at_once(), w.gradient_accumulation)},
      {"device_train_microbatch_size", w.micro_batch},
      {"precision", amp_word(plan, "OLMo")},
      {"max_grad_norm", plan.gradient_clipping},
      {"activation_checkpointing", checkpoint_word_of_olmo(plan)},
      {"fused_loss", false},
      {"data", {{"paths", Json::array({"yours.npy"})}}}};
  const std::string framework(name_of(plan.framework.kind));
  file["distributed_strategy"] = framework == "fsdp1" ? "fsdp" : framework;
  if (framework == "fsdp1") file["fsdp"] = fsdp_block_of_olmo(plan);
  if (plan.compile) file["compile"] = compile_block(plan);
  return header_comment(job, e) + yaml_text(file);
}

}  // namespace

const ExportFormat kOlmoFormat{"olmo", "olmo.yaml", olmo_yaml, false, true};

}  // namespace shardplan
