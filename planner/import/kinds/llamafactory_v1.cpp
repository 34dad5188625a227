#include "import/kinds/llamafactory_v1.h"

#include <fmt/format.h>

#include <array>

#include "import/vocabulary.h"

namespace shardplan::importing {
namespace llamafactory_v1 {
namespace {

void read_global(Key& key) {
  key.recipe().global_batch = key.integer(1);
  key.took("workload.gradient_accumulation follows");
}

/// plugins/trainer_plugins/distributed/fsdp2.py: fp32 shards, bf16 in computing, fp32 in reducing.
void read_distribution(Key& key) {
  const std::string name = key.text();
  if (name == "fsdp2") {
    Json framework{{"name", "fsdp2"}, {"reduce_dtype", "fp32"}};
    const Json* reshards = key.other("dist_config.reshard_after_forward");
    if (reshards != nullptr && *reshards == false) framework["reshard_after_forward"] = false;
    if (key.other_is_true("dist_config.offload_params")) framework["cpu_offload"] = true;
    return key.take("/framework", std::move(framework));
  }
  // fsdpturbo.py: FSDP2 in the type of the weights, experts sent for by all-to-all.
  if (name == "fsdpturbo") {
    const Json* dispatcher = key.other("dist_config.ep_dispatcher");
    if (dispatcher != nullptr && *dispatcher != "eager")
      key.warn("a dispatcher of fused kernels is estimated as the eager one");
    return key.take("/framework", Json{{"name", "fsdp2"}, {"reduce_dtype", "fp32"}});
  }
  if (name != "deepspeed")
    key.refuse(fmt::format("'{}' is not estimated", name), "fsdp2, fsdpturbo, deepspeed");
  const Json* file = key.other("dist_config.config_file");
  const std::string path = file != nullptr && file->is_string()
                               ? resolved_path(file->get<std::string>(), key.document().file)
                               : "";
  if (path.empty()) key.refuse("its config_file is not there", "dist_config.config_file");
  attach_ds_config(key, read_json_file(path), path);
}

void read_adapter(Key& key) {
  const std::string name = key.text();
  if (name == "freeze")
    return key.warn("only some layers are trained: the estimate is for all, which is more");
  if (name != "lora") key.refuse(fmt::format("'{}' is not estimated", name), "lora");
  make_lora(key.recipe());
  key.took("workload.method: lora");
}

void read_quantization(Key& key) {
  const std::int64_t bits = key.integer(1);
  if (bits != 4 && bits != 8) key.refuse(fmt::format("{} bits are not estimated", bits), "4 or 8");
  quantize_base(key, bits == 4 ? "nf4_double" : "int8");
  key.took(bits == 4 ? "workload.lora.quantization: nf4_double"
                     : "workload.lora.quantization: int8");
}

void read_activation(Key& key) {
  key.take("/checkpointing", key.flag() ? "full" : "none");
}

void read_optimizer_config(Key& key) {
  if (key.text() != "muon") key.refuse(fmt::format("'{}' is not read", key.text()), "muon");
  key.take("/optimizer", Json{{"name", "muon"}});
}

void read_kernel_config(Key& key) {
  if (key.text() == "liger_kernel") return key.take("/kernels", "liger");
  key.warn(
      "kernels of its own where the machine has them: time and working memory differ a little");
}

void read_context(Key& key) {
  if (key.integer(1) == 1) return key.ignore("1: not divided");
  const Json* mode = key.other("cp_mode");
  key.take(mode != nullptr && *mode == "ring" ? "/parallel/context" : "/parallel/sequence",
           key.integer(1));
}

constexpr std::array kRules{
    KeyRule{"model", "", read_model},
    KeyRule{"micro_batch_size", "/workload/micro_batch", as_integer},
    KeyRule{"global_batch_size", "", read_global},
    KeyRule{"cutoff_len", "/workload/sequence_length", as_integer},
    KeyRule{"max_grad_norm", "", read_clipping},
    KeyRule{"bf16", "", read_bf16},
    KeyRule{"enable_activation_checkpointing", "", read_activation},
    KeyRule{"dist_config.name", "", read_distribution},
    KeyRule{"peft_config.name", "", read_adapter},
    KeyRule{"peft_config.r", "", read_lora_rank},
    KeyRule{"peft_config.target_modules", "", read_lora_targets},
    KeyRule{"peft_config.lora_dropout", "", read_lora_dropout},
    KeyRule{"quant_config.quantization_bit", "", read_quantization},
    KeyRule{"optim_config.name", "", read_optimizer_config},
    KeyRule{"kernel_config.name", "", read_kernel_config},
    KeyRule{"cp_size", "", read_context},
    KeyRule{"dist_config.ep_size", "/parallel/expert", as_integer},
};

const std::array kIgnored{
    IgnoredKeys{"a step does not depend on it",
                {"model_class",
                 "train_dataset",
                 "eval_dataset",
                 "output_dir",
                 "learning_rate",
                 "max_steps",
                 "num_train_epochs",
                 "sample_backend",
                 "max_new_tokens",
                 "seed",
                 "save_*",
                 "logging_*",
                 "batching_*",
                 "lr_scheduler_config*",
                 "dist_config.*",
                 "peft_config.*",
                 "quant_config.*",
                 "optim_config.*",
                 "kernel_config.*",
                 "cp_mode",
                 "init_config.*",
                 "template",
                 "trust_remote_code",
                 "resume_from_checkpoint",
                 "dist_timeout",
                 "report_to",
                 "stage",
                 "full_determinism",
                 "pref_*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

}  // namespace
}  // namespace llamafactory_v1

void read_llamafactory_v1(const Document& d, Recipe& recipe) {
  if (const Json* stage = value_below(d.value, "stage"); stage != nullptr && *stage == "dpo")
    recipe.algorithm = "dpo";
  recipe.bf16 = true;  // training_args.py
  read_keys(d, {&llamafactory_v1::kOwn}, recipe);
  if (const Json* bf16 = value_below(d.value, "bf16"); bf16 != nullptr && *bf16 == false)
    recipe.bf16 = false;
  const bool lora = !recipe.lora.is_null();
  recipe.weights = {lora && *recipe.bf16 ? "bf16" : "fp32", !lora};
  const Json* how = value_below(d.value, "dist_config.name");
  if (how != nullptr && *how == "fsdpturbo")
    recipe.weights = {.dtype = *recipe.bf16 ? "bf16" : "fp32", .kept_in_shards = true};
  const Json* of_texts = value_below(d.value, "model_class");
  recipe.texts = of_texts != nullptr && *of_texts == "llm";
  if (lora && recipe.lora.contains("quantization")) recipe.lora["prepare_kbit"] = false;
  recipe.assume("/workload/micro_batch", 1, "its default");
  recipe.assume("/workload/sequence_length", 2048, "its default, cutoff_len");
  recipe.assume("/checkpointing", "full", "its default, enable_activation_checkpointing");
  recipe.assume("/optimizer", Json{{"name", "adamw"}, {"implementation", "foreach"}},
                "torch.optim.AdamW as it comes");
  recipe.set_default("/gradient_clipping", 1.0);
  if (!recipe.global_batch) recipe.set_default("/workload/gradient_accumulation", 1);
}

}  // namespace shardplan::importing
