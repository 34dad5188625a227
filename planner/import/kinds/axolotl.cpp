// axolotl's YAML (067b021c8, July 2026: utils/schemas, loaders/model.py, core/builders/base.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/fsdp.h"
#include "import/kinds/axolotl_mesh.h"
#include "import/kinds/axolotl_offloading.h"
#include "import/kinds/kind.h"
#include "import/preference.h"
#include "import/training_keys.h"
#include "import/vocabulary.h"
#include "load/model.h"

namespace shardplan::importing::axolotl {
namespace {

bool is_axolotl(const Document& d) {
  return has_any(d, {"base_model"}) &&
         has_any(d, {"datasets", "pretraining_dataset", "sequence_len", "micro_batch_size",
                     "adapter", "test_datasets"});
}

/// setup_fsdp_envs: what is not said is accelerate's.
constexpr FsdpDialect kAxolotlFsdp{1, "false", "NO_PREFETCH", "TRANSFORMER_BASED_WRAP"};

void read_adapter(Key& key) {
  const std::string name = key.text();
  if (name == "lora" || name == "qlora") {
    make_lora(key.recipe());
    return key.took("workload.method: lora");
  }
  key.refuse(fmt::format("the adapter '{}' is not estimated", name), "lora or qlora");
}

/// bnb_config of loaders/model.py: nf4 with a second quantization, unless bnb_config_kwargs says
/// otherwise.
void read_4bit(Key& key) {
  if (!key.flag()) return key.ignore("not in 4 bits");
  const Json* adapter = key.other("adapter");
  if (adapter == nullptr || adapter->is_null())
    key.refuse("4 bits without adapters cannot be trained", "adapter: qlora");
  const Json* twice = key.other("bnb_config_kwargs.bnb_4bit_use_double_quant");
  const std::string form = twice != nullptr && *twice == false ? "nf4" : "nf4_double";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

void read_target_linear(Key& key) {
  if (!key.flag()) return key.ignore("modules by name");
  make_lora(key.recipe());
  key.recipe().lora["targets"] = Json{"all-linear"};
  key.took("workload.lora.targets: all-linear");
}

void read_fsdp(Key& key) {
  std::string words;
  if (key.value().is_array() || key.value().is_string())
    for (const std::string& word : key.list()) words += word + " ";
  if (words.empty()) return key.ignore("empty");
  const Json* block = key.other("fsdp_config");
  read_fsdp_block(key, block == nullptr ? Json::object() : *block, words, kAxolotlFsdp);
}

void read_fsdp_config(Key& key) {
  const Json* fsdp = key.other("fsdp");
  if (fsdp != nullptr && !fsdp->is_null() && !fsdp->empty()) return key.took("with fsdp");
  if (key.value().empty()) return key.ignore("empty");
  read_fsdp_block(key, key.value(), "", kAxolotlFsdp);
}

void read_version(Key& key) {
  key.took("of fsdp_config");
}

/// Attention by a flag of its own, from before attn_implementation.
void read_attention_flag(Key& key) {
  if (key.value().is_string() ? key.value() == "false" : !key.flag()) return key.ignore("off");
  key.take("/attention", key.path() == "eager_attention" ? "eager" : "sdpa");
}

void read_plugins(Key& key) {
  for (const std::string& plugin : key.list()) {
    const std::string name = plugin.substr(plugin.rfind('.') + 1);
    const bool known = name == "LigerPlugin" || name == "CutCrossEntropyPlugin" ||
                       name == "SpectrumPlugin" || name == "KernelsPlugin";
    if (!known)
      key.recipe().note({.kind = Note::Kind::warning,
                         .file = key.origin().file,
                         .line = key.origin().line,
                         .key = key.path(),
                         .reason = name + " may change memory and time, and is not counted"});
    if (name == "CutCrossEntropyPlugin" && !key.other_is_true("cut_cross_entropy") &&
        key.other("cut_cross_entropy") == nullptr)
      key.recipe().set_default("/loss", "fused_linear");
  }
  key.took("plugins");
}

/// The loss without logits takes less than Liger's, which makes them in chunks.
void read_cut_loss(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.take("/loss", "fused_linear");
}

/// Kernels by name; finish.cpp leaves out those that Liger has not for the model's type.
void read_liger_kernel(Key& key) {
  if (!key.flag()) return key.ignore("off");
  const std::string& path = key.path();
  const std::string name = path == "liger_glu_activation" || path == "liger_swiglu"
                               ? "swiglu"
                               : path.substr(std::string_view("liger_").size());
  Json names =
      key.recipe().find("/kernels") == nullptr ? Json::array() : *key.recipe().find("/kernels");
  if (!names.is_array()) names = Json::array();
  names.push_back(name);
  key.take("/kernels", names);
}

/// Energy-based fine-tuning is GRPO whose rewards are features of a frozen network: the trained one
/// with its adapters off, or a copy (core/trainers/ebft/trainer.py, EBFTMixin).
void read_rl(Key& key) {
  if (key.text() != "ebft") return read_algorithm(key);
  const Json* mode = key.other("ebft.mode");
  if (mode != nullptr && *mode == "strided")
    key.refuse(
        "EBFT's blocks that one pass generates and trains on (ebft.mode strided) are not "
        "estimated",
        "ebft.mode structured");
  key.recipe().take_algorithm("grpo", key.origin());
  key.warn(
      "is estimated as GRPO with a reference, whose logits take more than the features that EBFT "
      "reads; features of the given answers, one for each prompt, take time that is not counted");
}

void read_step_rewards(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.took("model.architectures");
}

/// A head of so many labels for each token, and a cross-entropy over it (TRL's PRMTrainer).
void make_step_rewards(const Document& d, Recipe& recipe) {
  const Json* asked = value_below(d.value, "process_reward_model");
  if (asked == nullptr) return;
  const Key key(d, "process_reward_model", *asked, "", recipe);
  if (!key.flag()) return;
  const Json* named = recipe.has_model ? &recipe.asked_model : recipe.find("/model");
  const auto found =
      named == nullptr ? std::nullopt : find_config(*named, {d.file, key.path(), recipe.directory});
  if (!found) key.refuse("the model is not known", "a model of the catalogue");
  Json config = found->config;
  std::string stem = config.value("model_type", "");  // "qwen3_moe" is Qwen3Moe's, in any case
  std::erase(stem, '_');
  config["architectures"] = Json::array({stem + "ForTokenClassification"});
  const Json* labels = key.other("num_labels");
  config["num_labels"] = labels != nullptr && labels->is_number_integer() ? *labels : Json(2);
  recipe.job["model"] = config;
}

void read_reward(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.recipe().take_algorithm("reward", key.origin());
  key.took("workload.algorithm: reward");
}

void read_vllm(Key& key) {
  if (!key.flag()) return key.ignore("off");
  key.warn("vLLM generates elsewhere, or beside the trainer with memory of its own");
}

/// Ring attention of its own (monkeypatch/ring_attn), which gathers keys and values head by head.
void read_context_degree(Key& key) {
  if (key.integer(1) <= 1) return key.ignore("not divided");
  if (key.other("deepspeed") != nullptr && key.other("deepspeed")->is_string()) {
    key.recipe().set("/parallel/sequence", key.integer(1), key.origin());
    return key.warn("is estimated as DeepSpeed's Ulysses, which exchanges queries too");
  }
  key.recipe().set("/parallel/context", key.integer(1), key.origin());
  key.warn("is estimated as PyTorch's context_parallel, which keeps more");
}

/// GPTQ's 4 bits have a 16-bit scale and 4 bits of zero for a group, 128 weights as a rule; nf4
/// has an fp32 scale for 64.
void read_gptq(Key& key) {
  if (!key.flag()) return key.ignore("off");
  quantize_base(key, "nf4");
  key.warn("the base is estimated in nf4, which takes more than GPTQ's groups of 64 or more");
}

/// Weights that are no experts' are whole on each rank of the degree, or sharded over the others
/// alone (integrations/expert_parallel/plugin.py).
void read_expert_degree(Key& key) {
  if (key.integer(1) <= 1) return key.ignore("no expert parallelism");
  key.refuse(
      "axolotl's experts beside weights that all ranks of the degree have whole are not "
      "estimated",
      "1");
}

void read_degree(Key& key) {
  const std::int64_t degree = key.integer(1);
  if (degree == 1) return key.ignore("1: not divided");
  key.take(degree);
}

void read_unfrozen(Key& key) {
  if (key.value().empty()) return key.ignore("empty");
  key.warn("only some parameters are trained: the estimate is for all of them, which is more");
}

void read_unfrozen_layers(Key& key) {
  key.warn("a few layers are trained at a time: the estimate is for all of them, which is more");
}

/// monkeypatch/tiled_mlp: parts of 32,768 tokens unless told otherwise.
void read_tiles(Key& key) {
  constexpr std::int64_t kTokensOfPart = 32768, kUsualLength = 512;
  if (!key.flag()) return key.ignore("off");
  const auto said = [&](const char* name, std::int64_t otherwise) {
    const Json* value = key.other(name);
    return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : otherwise;
  };
  const std::int64_t parts = 1 + (said("sequence_len", kUsualLength) - 1) / kTokensOfPart;
  key.take("/mlp_tiles", said("tiled_mlp_num_shards", parts));
}

void read_tile_count(Key& key) {
  if (!key.other_is_true("tiled_mlp")) return key.ignore("tiled_mlp is off");
  key.took("mlp_tiles");
}

/// core/builders/base.py: accelerate's torchao backend, which has a scale for each tensor.
void read_fp8(Key& key) {
  if (!key.flag()) return key.ignore("off");
  take_fp8(key, "fp8-tensorwise", key.other_is_true("fp8_enable_fsdp_float8_all_gather"));
}

/// utils/quantization.py hands torchao a configuration of weights alone for nvfp4, which its
/// quantization-aware training has no fake quantizers for (0.17, 0.18: fake_quantize_config.py).
void read_qat(Key& key) {
  if (key.value().empty()) return key.ignore("empty");
  const Json* weights = key.other("qat.weight_dtype");
  if (weights != nullptr && *weights == "nvfp4")
    key.refuse("torchao 0.18 stops: \"Unexpected base config\", NVFP4WeightOnlyConfig",
               "weight_dtype int4, which torchao has");
  key.refuse("fake quantization keeps several copies of each weight, and is not estimated",
             "no qat block");
}

/// gpt-oss's own format is taken apart while it is loaded.
void read_quantized_loading(Key& key) {
  if (!key.other_is_true("model_quantization_config_kwargs.dequantize"))
    key.refuse("weights in the checkpoint's own format are not estimated",
               "model_quantization_config_kwargs.dequantize: true");
  key.ignore("taken apart to 16 bits while it is loaded");
}

void read_kernels(Key& key) {
  if (key.value() == false) return key.ignore("off");
  key.warn("kernels of its own: time and working memory differ a little from PyTorch's");
}

constexpr std::array kRules{
    KeyRule{"base_model", "", read_model},
    KeyRule{"base_model_config", "", read_model},
    KeyRule{"micro_batch_size", "/workload/micro_batch", as_integer},
    KeyRule{"gradient_accumulation_steps", "/workload/gradient_accumulation", as_integer},
    KeyRule{"sequence_len", "/workload/sequence_length", as_integer},
    KeyRule{"sample_packing", "/workload/packing", as_flag},
    KeyRule{"optimizer", "", read_optimizer},
    KeyRule{"adapter", "", read_adapter},
    KeyRule{"load_in_4bit", "", read_4bit},
    KeyRule{"load_in_8bit", "", read_load_in_8bit},
    KeyRule{"lora_target_linear", "", read_target_linear},
    KeyRule{"peft_use_rslora", "", read_rank_stabilized},
    KeyRule{"peft_use_dora", "", read_dora},
    KeyRule{"bfloat16", "", read_bf16},
    KeyRule{"float16", "", read_fp16},
    KeyRule{"fsdp", "", read_fsdp},
    KeyRule{"fsdp_config", "", read_fsdp_config},
    KeyRule{"fsdp_version", "", read_version},
    KeyRule{"attn_implementation", "", read_attention},
    KeyRule{"flash_attention", "", read_attention_flag},
    KeyRule{"sdp_attention", "", read_attention_flag},
    KeyRule{"xformers_attention", "", read_attention_flag},
    KeyRule{"flex_attention", "", read_attention_flag},
    KeyRule{"eager_attention", "", read_attention_flag},
    KeyRule{"plugins", "", read_plugins},
    KeyRule{"cut_cross_entropy", "", read_cut_loss},
    KeyRule{"liger_rope", "", read_liger_kernel},
    KeyRule{"liger_rms_norm", "", read_liger_kernel},
    KeyRule{"liger_layer_norm", "", read_liger_kernel},
    KeyRule{"liger_glu_activation", "", read_liger_kernel},
    KeyRule{"liger_swiglu", "", read_liger_kernel},
    KeyRule{"liger_cross_entropy", "", read_liger_kernel},
    KeyRule{"liger_fused_linear_cross_entropy", "", read_liger_kernel},
    KeyRule{"rl", "", read_rl},
    KeyRule{"reward_model", "", read_reward},
    KeyRule{"process_reward_model", "", read_step_rewards},
    KeyRule{"trl.max_completion_length", "", read_new_tokens},
    KeyRule{"trl.use_vllm", "", read_vllm},
    KeyRule{"trl.beta", "", read_beta},
    KeyRule{"rl_beta", "", read_beta},
    KeyRule{"precompute_ref_log_probs", "", read_precomputed},
    KeyRule{"dpo_use_logits_to_keep", "", warn_if_larger},
    KeyRule{"tensor_parallel_size", "/parallel/tensor", read_degree},
    KeyRule{"context_parallel_size", "", read_context_degree},
    KeyRule{"sequence_parallel_degree", "", read_context_degree},
    KeyRule{"dp_shard_size", "", read_shard_size},
    KeyRule{"dp_replicate_size", "", read_copies},
    KeyRule{"expert_parallel_size", "", read_expert_degree},
    KeyRule{"unfrozen_parameters", "", read_unfrozen},
    KeyRule{"activation_offloading", "", read_offloading},
    KeyRule{"gradient_checkpointing", "", read_blocks},
    KeyRule{"layer_offloading", "", refuse_if_true},
    KeyRule{"fp8", "", read_fp8},
    KeyRule{"qat", "", read_qat},
    KeyRule{"gptq", "", read_gptq},
    KeyRule{"relora", "", warn_if_true},
    KeyRule{"lisa_n_layers", "", read_unfrozen_layers},
    KeyRule{"model_quantization_config", "", read_quantized_loading},
    KeyRule{"diffusion", "", refuse_if_said},
    KeyRule{"lora_on_cpu", "", refuse_if_true},
    KeyRule{"tiled_mlp", "", read_tiles},
    KeyRule{"tiled_mlp_num_shards", "", read_tile_count},
    KeyRule{"quantize_moe_experts", "", warn_if_true},
    KeyRule{"lora_mlp_kernel", "", warn_if_true},
    KeyRule{"lora_qkv_kernel", "", warn_if_true},
    KeyRule{"lora_o_kernel", "", warn_if_true},
    KeyRule{"use_kernels", "", read_kernels},
    KeyRule{"llama4_linearized_experts", "", read_kernels},
    KeyRule{"use_scattermoe", "", read_kernels},
    KeyRule{"use_sonicmoe", "", read_kernels},
    KeyRule{"fused_attn_kernel", "", read_kernels},
    KeyRule{"gemma4_hybrid_attn_impl", "", read_kernels},
    KeyRule{"experts_implementation", "", read_kernels},
    KeyRule{"liger_rms_norm_gated", "", read_kernels},
    KeyRule{"use_glm_dsa_kernels", "", read_kernels},
    KeyRule{"use_dsv4_kernels", "", read_kernels},
};

const std::array kIgnored{
    IgnoredKeys{"a step does not depend on it",
                {"model_type",
                 "processor_type",
                 "model_config_type",
                 "cls_model_config",
                 "model_config",
                 "overrides_of_model_config",
                 "strict",
                 "num_epochs",
                 "lr_*",
                 "cosine_*",
                 "eta_min",
                 "loss_watchdog_*",
                 "early_stopping_patience",
                 "eot_tokens",
                 "mlflow_*",
                 "comet_*",
                 "swanlab_*",
                 "use_swanlab",
                 "use_wandb",
                 "use_tensorboard",
                 "use_mlflow",
                 "use_comet",
                 "use_trackio",
                 "use_otel_metrics",
                 "otel_*",
                 "auto_resume_from_checkpoints",
                 "revision_of_model",
                 "secrets",
                 "project_name",
                 "special_tokens*",
                 "tokens",
                 "tokens.*",
                 "added_tokens_overrides",
                 "train_on_inputs",
                 "test_value",
                 "adam_eps",
                 "peft_init_lora_weights",
                 "loraplus_*",
                 "lora_fan_in_fan_out",
                 "torchdistx_path",
                 "ddp",
                 "device_map*",
                 "base_model_ignore_patterns",
                 "relora_*",
                 "jagged_restart*",
                 "lisa_*",
                 "gptq_*",
                 "profiler_steps*",
                 "orpo_alpha",
                 "dpo_*",
                 "kto_*",
                 "simpo_gamma",
                 "center_rewards_coefficient",
                 "num_labels",
                 "trl.*",
                 "vllm.*",
                 "ebft.*",
                 "use_ray",
                 "ray_*",
                 "ddp_*",
                 "nccl_*",
                 "hf_use_auth_token",
                 "experimental_skip_move_to_device",
                 "flash_attn_*",
                 "flash_optimum",
                 "fix_untrained_tokens",
                 "fp8_*",
                 "nvfp4_merge_aware",
                 "provider",
                 "node_count",
                 "volumes",
                 "branch",
                 "dockerfile_commands",
                 "memory",
                 "timeout*",
                 "memory_preprocess",
                 "peft.*",
                 "max_packed_sequence_len",
                 "is_*_derived_model",
                 "freeze_mm_modules",
                 "flex_attn_compile_kwargs",
                 "model_quantization_config_kwargs*",
                 "resize_token_embeddings_to_32x",
                 "noisy_*",
                 "reinit_weights",
                 "gpu_memory_limit",
                 "lora_model_dir",
                 "full_finetune",
                 "s2_attention",
                 "load_best_model_at_end",
                 "message_*",
                 "saves_per_epoch",
                 "save_*",
                 "output_*"}},
    IgnoredKeys{"evaluation and saving are no part of a training step",
                {"evals_per_epoch", "val_set_size", "do_causal_lm_eval", "eval_*"}},
    IgnoredKeys{
        "the loader runs on the host",
        {"pretraining_dataset", "test_datasets", "sample_packing_*", "min_sample_len",
         "excess_length_strategy", "skip_prepare_dataset", "streaming_*", "pretrain_multipack_attn",
         "curriculum_sampling", "multipack_real_batches", "batch_flattening", "pad_to_sequence_len",
         "default_system_message", "roles_to_train", "processor_*", "image_*", "shuffle_*"}},
    IgnoredKeys{"compiled feed-forwards in parts are estimated as eager ones, which keep more",
                {"tiled_mlp_use_original_mlp"}},
    IgnoredKeys{"derived from the rest", {"batch_size", "world_size", "gpu*_ids"}},
    IgnoredKeys{"taken with load_in_4bit", {"bnb_config_kwargs*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

/// normalize_config: the weights are loaded in the computing type, and adapters beside them in fp32
/// (peft, autocast_adapter_dtype).
void read_loading(Recipe& recipe) {
  const bool bf16 = recipe.bf16.value_or(false);
  const bool fp16 = !bf16 && recipe.fp16.value_or(false);
  const bool int8 = recipe.lora.is_object() && recipe.lora.value("quantization", "") == "int8";
  recipe.weights.dtype = bf16 ? "bf16" : (fp16 || int8) ? "fp16" : "fp32";
  // monkeypatch/accelerate/fsdp2.py leaves out accelerate's cast of what trains.
  recipe.weights.kept_in_shards = true;
  // loaders/model.py casts embeddings and norms back behind prepare_model_for_kbit_training.
  if (!recipe.lora.is_null() && recipe.lora.contains("quantization"))
    recipe.lora["prepare_kbit"] = false;
}

void read(const Document& d, Recipe& recipe) {
  read_keys(d, {&kOwn, &kTrainingKeys, &kLoraKeys}, recipe);
  const Json* adapter = value_below(d.value, "adapter");
  if (adapter == nullptr || adapter->is_null()) recipe.lora = Json();  // lora_r says nothing then
  read_loading(recipe);
  make_step_rewards(d, recipe);
  // common/datasets.py, core/builders/causal.py: without a processor the data are texts.
  recipe.texts = !has_any(d, {"processor_type"});
  recipe.set_default("/trainer", "axolotl");
  recipe.assume("/workload/micro_batch", 1, "axolotl's default");
  recipe.set_default("/workload/gradient_accumulation", 1);
  recipe.assume("/workload/sequence_length", 512, "axolotl's default");
  recipe.assume("/optimizer", Json{{"name", "adamw"}, {"implementation", "fused"}},
                "axolotl's default, adamw_torch_fused");
  recipe.set_default("/gradient_clipping", 1.0);
  if (recipe.algorithm == "grpo") {
    recipe.rlhf["prompt_length"] = *recipe.find("/workload/sequence_length");
    if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 512;
  }
  settle_reference(recipe, 0);  // trl 1.8, grpo_config.py
  if (const Json* rl = value_below(d.value, "rl"); rl != nullptr && *rl == "ebft")
    recipe.rlhf["reference"] = recipe.lora.is_null() ? "copy" : "base";
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"axolotl", "an axolotl configuration", is_axolotl, read};

}  // namespace shardplan::importing::axolotl
