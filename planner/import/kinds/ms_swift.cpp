// ms-swift's command lines and YAML (3602360a5, August 2026: swift/arguments, swift/trainers).
#include <fmt/format.h>

#include <array>
#include <map>

#include "import/fsdp.h"
#include "import/kinds/kind.h"
#include "import/kinds/megatron.h"
#include "import/kinds/ms_swift_teacher.h"
#include "import/preference.h"
#include "import/training_keys.h"
#include "import/vocabulary.h"

namespace shardplan::importing::ms_swift {
namespace {

bool runs_megatron(const Document& d) {
  return d.program.starts_with("megatron ");
}

bool is_ms_swift(const Document& d) {
  if (d.program.starts_with("swift ")) {
    const std::string task = d.program.substr(6);
    return task == "sft" || task == "pt" || task == "rlhf";
  }
  if (runs_megatron(d)) return true;
  return !d.is_command() && has_any(d, {"tuner_type", "train_type"}) && has_any(d, {"model"});
}

std::int64_t number_of(const Key& key, std::string_view name, std::int64_t otherwise) {
  const Json* value = key.other(name);
  return value != nullptr && value->is_number_integer() && *value > 0 ? value->get<std::int64_t>()
                                                                      : otherwise;
}

/// Tuners that keep less than LoRA of some rank. AdaLoRA has A·E beside its two matrices, as large
/// as A (peft, tuners/adalora/layer.py); Bone sums parts of its input before its one matrix, and
/// keeps those sums alone (tuners/miss/layer.py).
bool read_smaller_tuner(Key& key) {
  const std::string name = key.text();
  if (name != "adalora" && name != "bone") return false;
  const Json* start = key.other("init_weights");
  if (name == "bone" && start != nullptr && *start == "bat")
    key.refuse("Bone over whole weights ('bat') is not estimated", "init_weights true");
  constexpr std::int64_t kAdaLora = 12, kBone = 4;  // tuner_args.py: adalora_init_r, reft_rank
  const std::int64_t rank = name == "bone" ? number_of(key, "reft_rank", kBone)
                                           : 2 * number_of(key, "adalora_init_r", kAdaLora);
  make_lora(key.recipe());
  key.recipe().lora["rank"] = rank;
  key.warn(fmt::format("is estimated as LoRA of rank {}, which keeps more", rank));
  return true;
}

void read_tuner(Key& key) {
  if (read_smaller_tuner(key)) return;
  const std::string name = key.text();
  if (name == "full") return key.took("workload.method: full");
  if (name == "llamapro")
    return key.warn("only blocks that it adds are trained: the estimate is for all, which is more");
  if (name != "lora" && name != "longlora" && name != "lora_llm")
    key.refuse(fmt::format("'{}' is not estimated", name),
               "full, lora, lora_llm, adalora, bone, longlora or llamapro");
  make_lora(key.recipe());
  if (name == "lora_llm") {  // tuner_plugin/lora_llm.py: tower and projector by their prefixes
    key.recipe().lora["train_whole"] =
        Json{"visual", "vision_tower", "vision_model", "multi_modal_projector", "connector"};
    key.recipe().frozen_tower = key.recipe().frozen_projector = false;
  }
  if (name == "longlora") key.warn("attention in shifted groups: it takes less than all of it");
  key.took("workload.method: lora");
}

void read_rank(Key& key) {
  if (is_full(key)) return key.ignore("no adapters");
  for (const char* name : {"tuner_type", "train_type"})
    if (const Json* type = key.other(name);
        type != nullptr && (*type == "adalora" || *type == "bone"))
      return key.ignore("the tuner has a rank of its own");
  read_lora_rank(key);
}

void read_targets(Key& key) {
  if (is_full(key)) return key.ignore("no adapters");
  read_lora_targets(key);
}

/// pipelines/train/tuner.py: words for all tables and all norms.
void read_saved(Key& key) {
  Json names = Json::array();
  for (const std::string& word : key.list()) {
    std::vector<const char*> meant;
    if (word == "all-embedding") meant = {"embed_tokens", "wte", "wpe", "word_embeddings"};
    if (word == "all-norm") meant = {"norm", "ln_f", "ln_1", "ln_2"};
    for (const char* name : meant) names.push_back(name);
    if (meant.empty()) names.push_back(word);
  }
  if (names.empty()) return key.ignore("empty");
  key.recipe().beside_lora["modules_to_save"] = names;
  key.took("workload.lora.modules_to_save: " + names.dump());
}

void read_bits(Key& key) {
  const std::int64_t bits = key.integer(1);
  const Json* method = key.other("quant_method");
  if ((method != nullptr && *method != "bnb") || (bits != 4 && bits != 8))
    key.refuse(fmt::format("{} bits of such a method are not estimated", bits),
               "4 or 8 with quant_method bnb");
  const Json* twice = key.other("bnb_4bit_use_double_quant");
  const Json* kind = key.other("bnb_4bit_quant_type");
  const std::string base = kind != nullptr && *kind == "fp4" ? "fp4" : "nf4";
  const bool once = twice != nullptr && *twice == false;
  const std::string form = bits == 8 ? "int8" : once ? base : base + "_double";
  quantize_base(key, form);
  key.took("workload.lora.quantization: " + form);
}

/// swift/config/zero*.json, which `--deepspeed zero2` stands for.
Json named_config(std::string_view name) {
  Json zero{{"stage", name[4] - '0'}};
  if (name.ends_with("_offload")) {
    zero["offload_optimizer"] = Json{{"device", "cpu"}, {"pin_memory", true}};
    if (name[4] == '3') zero["offload_param"] = Json{{"device", "cpu"}, {"pin_memory", true}};
  }
  if (name[4] == '3') {
    for (const char* key : {"reduce_bucket_size", "stage3_prefetch_bucket_size",
                            "stage3_param_persistence_threshold"})
      zero[key] = "auto";
    zero["stage3_max_live_parameters"] = zero["stage3_max_reuse_distance"] = 1e9;
    zero["sub_group_size"] = 1e9;
    zero["overlap_comm"] = false;
    zero["contiguous_gradients"] = true;
  } else {
    zero["allgather_bucket_size"] = zero["reduce_bucket_size"] = 2e8;
    zero["overlap_comm"] = false;
    zero["contiguous_gradients"] = true;
  }
  return Json{{"fp16", {{"enabled", "auto"}}},
              {"bf16", {{"enabled", "auto"}}},
              {"zero_optimization", zero},
              {"gradient_accumulation_steps", "auto"},
              {"gradient_clipping", "auto"},
              {"train_batch_size", "auto"},
              {"train_micro_batch_size_per_gpu", "auto"}};
}

void read_swift_deepspeed(Key& key) {
  if (key.value().is_string()) {
    const std::string name = key.text();
    for (const char* known : {"zero0", "zero1", "zero2", "zero3", "zero2_offload", "zero3_offload"})
      if (name == known) return attach_ds_config(key, named_config(name), "");
  }
  read_deepspeed(key);
}

void read_swift_fsdp(Key& key) {
  if (key.value() == "fsdp2") return read_fsdp_block(key, Json::object(), "", kTransformersFsdp);
  const std::string path = resolved_path(key.text(), key.document().file);
  if (path.empty()) key.refuse(fmt::format("no file '{}'", key.text()), "fsdp2, or a JSON file");
  const Json file = read_json_file(path);
  const Json* words = value_below(file, "fsdp");
  const Json* block = value_below(file, "fsdp_config");
  if (words == nullptr || !words->is_string() || block == nullptr || !block->is_object())
    key.refuse(fmt::format("'{}' has no fsdp and fsdp_config", path), "both, as ms-swift's own");
  const Json* offloads = value_below(*block, "activation_cpu_offload");
  if (offloads != nullptr && *offloads == true)
    key.warn("activations on the host are estimated as kept on the GPU, which is more");
  Json options = *block;
  options.erase("activation_cpu_offload");
  read_fsdp_block(key, options, words->get<std::string>(), kTransformersFsdp);
}

/// rlhf_trainers/args_mixin.py: 0.9 of the GPU.
void read_vllm(Key& key) {
  read_vllm_engine(key, {});
}

void read_divided(Key& key) {
  if (key.integer(1) == 1) return key.ignore("1: not divided");
  key.take("/parallel/sequence", key.integer(1));
}

/// sequence_parallel.py pads samples until all ranks of one have as many tokens.
void pad_sequences(Recipe& recipe) {
  const Json* ranks = recipe.find("/parallel/sequence");
  const Json* length = recipe.find("/workload/sequence_length");
  if (ranks == nullptr || length == nullptr) return;
  const auto over = ranks->get<std::int64_t>(), tokens = length->get<std::int64_t>();
  if (tokens % over == 0) return;
  const std::int64_t padded = (tokens / over + 1) * over;
  recipe.job["workload"]["sequence_length"] = padded;
  recipe.note({.kind = Note::Kind::assumed,
               .field = fmt::format("workload.sequence_length: {}", padded),
               .reason = fmt::format("samples are padded to a multiple of {} tokens", over)});
}

void read_padding_free(Key& key) {
  if (key.flag())
    key.warn("padding is left out: the longest batch is as long, shorter ones take less time");
  else
    key.ignore("off");
}

constexpr std::array kRules{
    KeyRule{"model", "", read_model},
    KeyRule{"tuner_type", "", read_tuner},
    KeyRule{"train_type", "", read_tuner},
    KeyRule{"lora_rank", "", read_rank},
    KeyRule{"target_modules", "", read_targets},
    KeyRule{"torch_dtype", "", read_weights_dtype},
    KeyRule{"max_length", "/workload/sequence_length", as_integer},
    KeyRule{"packing", "/workload/packing", as_flag},
    KeyRule{"padding_free", "", read_padding_free},
    KeyRule{"attn_impl", "", read_attention},
    KeyRule{"quant_bits", "", read_bits},
    KeyRule{"deepspeed", "", read_swift_deepspeed},
    KeyRule{"fsdp", "", read_swift_fsdp},
    KeyRule{"rlhf_type", "", read_algorithm},
    KeyRule{"max_completion_length", "", read_new_tokens},
    KeyRule{"teacher_model", "", read_teacher},
    KeyRule{"teacher_model_server", "", refuse_teacher_server},
    KeyRule{"teacher_deepspeed", "", read_teacher_deepspeed},
    KeyRule{"offload_teacher_model", "", read_teacher_offload},
    KeyRule{"gkd_logits_topk", "", read_top_logits},
    KeyRule{"use_vllm", "", read_vllm},
    KeyRule{"beta", "", read_beta},
    KeyRule{"precompute_ref_log_probs", "", read_precomputed},
    KeyRule{"sequence_parallel_size", "", read_divided},
    KeyRule{"modules_to_save", "", read_saved},
    KeyRule{"freeze_vit", "", read_frozen_tower},
    KeyRule{"freeze_aligner", "", read_frozen_projector},
    KeyRule{"freeze_llm", "", refuse_if_true},
    KeyRule{"use_galore", "", warn_if_larger},
    KeyRule{"optimizer_cpu_offload", "", refuse_if_true},
};

const std::array kIgnored{
    IgnoredKeys{"taken with quant_bits",
                {"quant_method", "bnb_4bit_compute_dtype", "bnb_4bit_quant_type",
                 "bnb_4bit_use_double_quant", "bnb_4bit_quant_storage"}},
    IgnoredKeys{"a step does not depend on it", {"vit_*", "aligner_lr"}},
    IgnoredKeys{"the model's own most: workload.image_tokens says another", {"max_pixels"}},
    IgnoredKeys{"parameters that train by name, which the estimate does not tell apart",
                {"freeze_parameters*", "trainable_parameters*"}},
    IgnoredKeys{"a step does not depend on it",
                {"model_author",
                 "model_name",
                 "system",
                 "load_from_cache_file",
                 "task_type",
                 "temperature",
                 "top_*",
                 "num_generations",
                 "beta",
                 "loss_type",
                 "reward_*",
                 "vllm_*",
                 "sleep_level",
                 "offload_model",
                 "offload_optimizer",
                 "stream",
                 "log_*",
                 "external_plugins",
                 "merge_lora",
                 "use_hf",
                 "use_chat_template",
                 "agent_template",
                 "template*",
                 "loss_scale",
                 "epsilon*",
                 "rpo_alpha",
                 "kl_*",
                 "overlong_filter",
                 "steps_per_generation",
                 "num_iterations",
                 "adapters",
                 "importance_sampling_level",
                 "dynamic_sample",
                 "max_resample_times",
                 "multi_turn_*",
                 "max_turns",
                 "teacher_tag_key",
                 "lmbda",
                 "streaming",
                 "val_dataset",
                 "cached_*",
                 "to_cached_dataset",
                 "check_model",
                 "model_type",
                 "lazy_tokenize",
                 "response_*",
                 "enable_thinking",
                 "add_non_thinking_prefix",
                 "new_special_tokens",
                 "problem_type",
                 "num_labels",
                 "async_generate",
                 "max_new_tokens",
                 "columns",
                 "infer_backend",
                 "truncation_strategy",
                 "load_data_args",
                 "model_kwargs",
                 "move_model_batches",
                 "lora_alpha",
                 "lora_bias",
                 "lr",
                 "min_lr",
                 "use_gym_env",
                 "gym_env",
                 "scale_rewards",
                 "sft_alpha",
                 "desirable_weight",
                 "undesirable_weight",
                 "cosine_*",
                 "use_ray",
                 "load_args",
                 "init_weights",
                 "soft_*",
                 "stop_words",
                 "ds3_gather_for_generation",
                 "result_path",
                 "write_batch_size",
                 "acc_strategy",
                 "experts_impl",
                 "router_aux_loss_coef",
                 "advantage_estimator",
                 "create_checkpoint*",
                 "use_logits_to_keep",
                 "padding_side",
                 "split_dataset_ratio",
                 "num_train_epochs",
                 "dataset*",
                 "output_dir",
                 "logging_*",
                 "gradient_accumulation_fusion",
                 "rlhf_type",
                 "packing_*",
                 "lora_dtype",
                 "attn_impl",
                 "use_cpu_initialization",
                 "lorap_*",
                 "galore_*",
                 "adalora_*",
                 "reft_*",
                 "self_cognition*"}},
};
constexpr KeyTable kOwn{kRules, kIgnored};

std::optional<std::int64_t> environment(const Document& d, const char* name) {
  const Json* value = value_below(d.value, std::string("environment.") + name);
  return value != nullptr && value->is_number_integer() ? std::optional(value->get<std::int64_t>())
                                                        : std::nullopt;
}

/// swift/cli: one process unless NPROC_PER_NODE asks for more.
void read_processes(const Document& d, Recipe& recipe) {
  if (const auto each = environment(d, "NPROC_PER_NODE")) recipe.per_machine = *each;
  if (const auto machines = environment(d, "NNODES")) recipe.machines = *machines;
}

/// tuner_args.py and megatron_args.py have the same defaults.
void fill_lora(Recipe& recipe) {
  if (!recipe.lora.contains("rank")) recipe.lora["rank"] = 8;
  if (!recipe.lora.contains("targets")) recipe.lora["targets"] = Json{"all-linear"};
  if (!recipe.beside_lora.contains("dropout")) recipe.beside_lora["dropout"] = 0.05;
}

/// Megatron Core's names of linears, which are joint, in the words of Hugging Face.
Json parts_of_joint(const Json& targets) {
  static const std::map<std::string, std::vector<const char*>, std::less<>> kParts{
      {"linear_qkv", {"q_proj", "k_proj", "v_proj"}},
      {"linear_proj", {"o_proj"}},
      {"linear_fc1", {"gate_proj", "up_proj"}},
      {"linear_fc2", {"down_proj"}},
      {"linear_q_down_proj", {"q_a_proj"}},
      {"linear_q_up_proj", {"q_b_proj"}},
      {"linear_q_proj", {"q_proj"}},
      {"linear_kv_down_proj", {"kv_a_proj_with_mqa"}},
      {"linear_kv_up_proj", {"kv_b_proj"}}};
  Json names = Json::array();
  for (const Json& target : targets) {
    const auto found = kParts.find(target.get<std::string>());
    if (found == kParts.end())
      names.push_back(target);
    else
      for (const char* part : found->second) names.push_back(part);
  }
  return names;
}

/// Of `megatron rlhf`: those that compare answers. GRPO and GKD generate in an engine beside
/// Megatron Core's ranks.
void read_megatron_algorithm(Key& key) {
  const std::string name = key.text();
  if (name == "grpo" || name == "gkd")
    key.refuse(fmt::format("'{}' under Megatron-LM is not estimated", name), "dpo, kto or rm");
  read_algorithm(key);
}

/// megatron_args.py, where its defaults are not Megatron-LM's.
void assume_megatron_defaults(const Document& d, Recipe& recipe) {
  if (!has_any(d, {"bf16", "fp16"})) {
    const bool half = recipe.weights.dtype == "fp16";
    recipe.assume(has_any(d, {"fp8_format"}) ? "/precision/preset" : "/precision",
                  half ? "fp16-master" : "bf16-master",
                  "ms-swift computes in the checkpoint's type");
  }
  if (!has_any(d, {"recompute_granularity"}))
    recipe.assume("/checkpointing", "selective", "ms-swift's default");
  if (!has_any(d, {"global_batch_size"})) recipe.global_batch = 16;
  if (has_any(d, {"expert_model_parallel_size"}))
    recipe.assume("/parallel/expert_tensor", 1, "ms-swift's default");
}

/// megatron_args.py trains all parameters unless told otherwise.
void read_megatron(const Document& d, Recipe& recipe) {
  Document arguments = d;
  const auto read_own = [&](const char* own, auto&& reader) {
    const auto found = arguments.value.find(own);
    if (found == arguments.value.end()) return;
    Key key(d, own, *found, "", recipe);
    reader(key);
    arguments.value.erase(own);
  };
  for (const char* type : {"tuner_type", "train_type"}) read_own(type, read_tuner);
  const bool adapts = !recipe.lora.is_null();
  const auto of_adapters = [&](void (*reader)(Key&)) {
    return [adapts, reader](Key& key) { adapts ? reader(key) : key.ignore("no adapters"); };
  };
  read_own("model", read_model);
  read_own("torch_dtype", read_weights_dtype);
  read_own("packing", [](Key& key) { key.take("/workload/packing", key.flag()); });
  read_own("padding_free", read_padding_free);
  read_own("max_length", [](Key& key) { key.take("/workload/sequence_length", key.integer(1)); });
  read_own("rlhf_type", read_megatron_algorithm);
  read_own("lora_rank", of_adapters(read_rank));
  read_own("lora_dropout", of_adapters(read_lora_dropout));
  read_own("modules_to_save", of_adapters(read_saved));
  read_own("target_modules", of_adapters(read_targets));
  if (adapts) {
    fill_lora(recipe);
    recipe.lora["targets"] = parts_of_joint(recipe.lora["targets"]);
    // rlhf_mixin.py, null_ref_context: the trained model with its adapters off.
    if (!recipe.algorithm.empty() && recipe.algorithm != "reward")
      recipe.rlhf["reference"] = "base";
  }
  assume_megatron_defaults(d, recipe);
  static const KeyTable kOthers{{}, kIgnored};
  read_megatron_arguments(arguments, recipe, &kOthers);
  if (!has_any(d, {"use_distributed_optimizer"}))
    recipe.job["framework"]["distributed_optimizer"] = true;
}

void read(const Document& d, Recipe& recipe) {
  read_processes(d, recipe);
  if (runs_megatron(d)) return read_megatron(d, recipe);
  read_keys(d, {&kOwn, &kTrainingKeys, &kLoraKeys}, recipe);
  if (!has_any(d, {"tuner_type", "train_type"})) {
    make_lora(recipe);
    recipe.note({.kind = Note::Kind::assumed,
                 .field = "workload.method: lora",
                 .reason = "ms-swift's default, tuner_type"});
  }
  if (!recipe.lora.is_null()) fill_lora(recipe);
  // model_args.py: computing in the type of the weights, the checkpoint's bf16 where nothing says.
  if (!recipe.bf16 && !recipe.fp16) {
    recipe.bf16 = recipe.weights.dtype.empty() || recipe.weights.dtype == "bf16";
    recipe.fp16 = recipe.weights.dtype == "fp16" || recipe.weights.dtype == "fp32";
    recipe.note({.kind = Note::Kind::assumed,
                 .field = recipe.bf16.value() ? "bf16" : "fp16",
                 .reason = "ms-swift computes in the type of the weights"});
  }
  if (recipe.weights.dtype.empty()) recipe.weights.dtype = "bf16";
  recipe.set_default("/trainer", "hf_trainer");
  recipe.assume("/workload/micro_batch", 1, "ms-swift's default");
  if (recipe.find("/workload/gradient_accumulation") == nullptr)
    recipe.global_batch = 16;  // trainers/arguments.py: as many micro-batches as make 16
  recipe.assume("/checkpointing", "full", "ms-swift's default, gradient_checkpointing");
  settle_distillation(d, recipe);
  if (generates(recipe)) {
    const Json* length = recipe.find("/workload/sequence_length");
    recipe.rlhf["prompt_length"] = length == nullptr ? Json(2048) : *length;
    if (!recipe.rlhf.contains("new_tokens")) recipe.rlhf["new_tokens"] = 512;
  } else if (!recipe.algorithm.empty()) {
    recipe.assume("/workload/sequence_length", 2048, "ms-swift's max_length, where it is not said");
  }
  freeze_by_default(recipe);
  pad_sequences(recipe);
  settle_reference(recipe, 0.04);  // arguments/rlhf_args.py
  training_defaults(recipe);
}

}  // namespace

extern const Kind kKind;
const Kind kKind{"ms_swift", "an ms-swift command", is_ms_swift, read};

}  // namespace shardplan::importing::ms_swift
